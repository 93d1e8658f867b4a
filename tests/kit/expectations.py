"""A suite of expectations as other tools write it."""

import json

import yaml

DICTIONARY = """\
Column Name;Data Type;Minimum;Maximum;Allowed values;Definition;Nullable
age;int;0;120;;Age in years;no
state;varchar(8);;;new | paid | void;;yes
fee;decimal(8,2);0;999.99;;;
born;date;1900-01-01;2020-12-31;;;no
"""


DBT = """
version: 2
models:
  - name: patients
    columns:
      - name: age
        data_type: int
        description: Age in years
        data_tests: [not_null, {dbt_utils.accepted_range: {min_value: 0, max_value: 120}}]
      - {name: state, data_type: varchar(8), tests: [{accepted_values: {arguments: {values: [new, paid, void]}}}]}
      - name: fee
        data_type: "numeric(8, 2)"
        constraints: [{type: check, expression: "fee >= 0 and fee <= 999.99"}]
      - name: born
        data_type: date
        constraints: [{type: not_null}]
        data_tests:
          - dbt_expectations.expect_column_values_to_be_between: {min_value: "1900-01-01", max_value: "2020-12-31"}
"""


JSON_SCHEMA = {
    "type": "array",
    "items": {"$ref": "#/$defs/row"},
    "$defs": {
        "row": {
            "type": "object",
            "required": ["age", "fee", "born"],
            "properties": {
                "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 121, "description": "Age in years"},
                "state": {"anyOf": [{"enum": ["new", "paid", "void"], "type": "string"}, {"type": "null"}]},
                "fee": {"type": "number", "minimum": 0, "maximum": 999.99, "multipleOf": 0.01},
                "born": {
                    "type": "string",
                    "format": "date",
                    "formatMinimum": "1900-01-01",
                    "formatMaximum": "2020-12-31",
                },
            },
        }
    },
}


DDL = """
-- written by a database; it's fine
CREATE TYPE public.progress AS ENUM ('new', 'paid', 'void');
CREATE TABLE IF NOT EXISTS public."Patients" (
    "age" integer NOT NULL, /* years */
    state progress,
    fee numeric(8, 2) DEFAULT (0 + 1),
    born date NOT NULL CHECK (born BETWEEN DATE '1900-01-01' AND '2020-12-31'::date),
    CONSTRAINT sane CHECK (((age >= 0) AND (121 > age))),
    CHECK (fee >= 0 AND fee <= 999.99)
);
COMMENT ON COLUMN public."Patients".age IS 'Age in years';
CREATE TABLE other (x text);
"""


PANDERA = """
schema_type: dataframe
columns:
  age: {dtype: int64, nullable: false, description: Age in years, checks: {in_range: {min_value: 0, max_value: 120}}}
  state: {dtype: str, nullable: true, checks: [{value: [new, paid, void], options: {check_name: isin}}]}
  fee: {dtype: "decimal(8, 2)", nullable: false, greater_than_or_equal_to: 0, checks: {le: {value: 999.99}}}
  born: {dtype: date, nullable: false, checks: {ge: "1900-01-01", le: 2020-12-31}}
"""


ODCS = """
apiVersion: v3.1.0
kind: DataContract
id: patients
version: 1.0.0
status: active
schema:
  - name: patients
    properties:
      - name: age
        description: Age in years
        logicalType: integer
        physicalType: int
        required: true
        logicalTypeOptions: {minimum: 0, exclusiveMaximum: 121}
      - name: state
        logicalType: string
        required: false
        quality: [{metric: invalidValues, arguments: {validValues: [new, paid, void]}, mustBe: 0}]
      - {name: fee, physicalType: "decimal(8, 2)", logicalTypeOptions: {minimum: 0, maximum: 999.99}}
      - name: born
        logicalType: date
        logicalTypeOptions: {minimum: "1900-01-01", maximum: "2020-12-31"}
        quality: [{type: library, metric: nullValues, mustBe: 0}]
  - {name: other, properties: [{name: x, logicalType: string}]}
"""


def expectation(name: str, column: str, **more: object) -> dict[str, object]:
    return {"type": name, "kwargs": {"column": column, **more}}


SUITE = {
    "name": "patients",
    "expectations": [
        expectation("expect_column_values_to_be_of_type", "age", type_="INTEGER"),
        expectation("expect_column_values_to_be_between", "age", min_value=0, max_value=121, strict_max=True),
        expectation("expect_column_values_to_not_be_null", "age"),
        expectation("expect_column_values_to_be_in_set", "state", value_set=["new", "paid", "void"]),
        expectation("expect_column_values_to_be_in_type_list", "state", type_list=["VARCHAR", "StringType"]),
        expectation("expect_column_min_to_be_between", "fee", min_value=0, max_value=3),
        expectation("expect_column_max_to_be_between", "fee", min_value=900, max_value=999.99),
        expectation("expect_column_values_to_be_of_type", "fee", type_="DECIMAL(8,2)"),
        expectation("expect_column_values_to_be_of_type", "born", type_="DateType"),
        expectation("expect_column_values_to_be_between", "born", min_value="1900-01-01", max_value="2020-12-31"),
        expectation("expect_column_values_to_not_be_null", "born"),
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}},
    ],
}


WRITTEN = {
    "dictionary.csv": DICTIONARY,
    "schema.yml": DBT,
    "schema.json": json.dumps(JSON_SCHEMA),
    "table.sql": DDL,
    "pandera.yaml": PANDERA,
    "pandera.json": json.dumps(yaml.safe_load(PANDERA), default=str),
    "patients.odcs.yaml": ODCS,
    "suite.json": json.dumps(SUITE),
}
