"""What Prefect's log and UI are told of a run: every stage and every failure, a report that opens, and no value."""

import base64
import json
import logging
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dpmodels.errors import NacreError
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from flows.with_prefect.artifacts import MOST_PICTURES, report_in_short
from flows.with_prefect.recorded import run_as_flow, run_stage
from flows.with_prefect.server import prefect_server
from tests.hand_off.make_golden import started
from tests.kit.api import Api
from tests.kit.reports import facts_of
from tests.kit.stages import CANARY, Run, cast, refuse, train
from tests.kit.support import make_records

pytestmark = pytest.mark.processes

NACRE = Nacre(NacreMeasurement(fine_cells=32))


class Heard(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.mark.slow
def test_the_log_names_every_stage_and_failure_and_no_value(
    tmp_path: Path, prefect_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    from prefect import flow

    heard, logger = Heard(), logging.getLogger("prefect.flow_runs")

    @flow(name="stages", validate_parameters=False)
    def stages() -> None:
        logger.setLevel("INFO")  # the server of one run is silent
        logger.addHandler(heard)
        run_stage(train, Run(tmp_path), [])
        for stage in (refuse, cast):
            with pytest.raises(NacreError):
                run_stage(stage, Run(tmp_path))

    with prefect_server(tmp_path / "home"):
        stages()
    logger.removeHandler(heard)
    assert heard.lines[:2] == ["stage train begins: reads released objects only, may be retried", "stage train is done"]
    assert heard.lines[2] == "stage sanitize begins: reads private data, is never retried"
    assert heard.lines[3] == "stage sanitize failed: column age: must be an integer"
    assert heard.lines[5].startswith("stage ingest failed: stage ingest failed with ArrowInvalid")
    assert CANARY not in " ".join(heard.lines)


def test_the_report_in_short_needs_no_other_file_and_its_pictures_are_light() -> None:
    facts = json.loads(json.dumps(facts_of(NACRE, make_records(2000), make_records(2000, seed=1))))
    facts["columns"][0]["warning"] = "99 % of the records lie in one cell, <b>0</b>."
    text = report_in_short(facts, Path("/srv/out"))
    assert "file:" not in text and "**hand-off**: /srv/out/report.html" in text
    assert "**worst columns**: age (not resolved), " in text
    assert text.split("\n\n")[1] == f"**{facts['headline']}**" and "within" in facts["headline"]
    assert r"- **warning 1**: column age: 99 % of the records lie in one cell, \<b\>0\</b\>." in text
    pictures = re.findall(r"!\[column \d+\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", text)
    assert len(pictures) == min(MOST_PICTURES, len(facts["columns"]))
    for picture in pictures:
        svg = ElementTree.fromstring(base64.b64decode(picture))
        paper = svg.find("{http://www.w3.org/2000/svg}rect")
        assert paper is not None and paper.get("fill") == "#fff" and paper.get("width") == "100%"
        assert "var(" not in base64.b64decode(picture).decode()


@pytest.mark.slow
def test_flow_runs_are_named_by_their_data_set(
    tmp_path: Path, prefect_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    run = started(tmp_path / "site")
    with prefect_server(tmp_path / "server"):
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.filters import FlowRunFilter

        from flows.with_prefect.worker import deployed, name_flow_run

        deployed("named")(lambda: name_flow_run(run))()
        run_as_flow(run, lambda *_: None)
        with get_client(sync_client=True) as client:
            named = FlowRunFilter.model_validate({"name": {"any_": [f"clinic {run.name}"]}})
            assert len(client.read_flow_runs(flow_run_filter=named)) == 2
