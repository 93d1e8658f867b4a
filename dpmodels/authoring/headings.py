"""The headings that data dictionaries have, in English, German, French, Spanish and Dutch, and their meanings."""

import re
from unicodedata import combining, normalize

HEADINGS = {
    "name": "name column column_name colname col column_header header variable variable_name variable_field_name var "
    "varname field field_name data_field attribute attribute_name feature feature_name element element_name "
    "data_element data_element_name feld feldname spalte spaltenname merkmal merkmalsname variablenname attributname "
    "name_der_spalte name_des_feldes name_der_variable spaltenbezeichnung feldbezeichnung "
    "datenfeld nom nom_de_colonne nom_de_la_colonne nom_de_variable nom_de_la_variable nom_du_champ colonne champ "
    "nombre nombre_de_columna nombre_de_la_columna nombre_de_variable nombre_del_campo columna campo "
    "naam variabele variabelenaam kolom kolomnaam veld veldnaam naam_van_de_kolom kenmerk",
    "type": "type data_type datatype dtype column_type variable_type field_type attribute_type kind storage_type "
    "value_type sql_type data_format format typ datentyp feldtyp spaltentyp variablentyp datenformat type_de_donnée "
    "type_de_données type_de_variable type_de_champ tipo tipo_de_dato tipo_de_datos tipo_de_variable tipo_de_campo "
    "formato gegevenstype datatype_kolom veldtype soort",
    "min": "min minimum lower low lower_bound lower_limit lowest smallest least min_value minimum_value lowest_value "
    "valid_min minimum_allowed text_validation_min from von mindestwert minimalwert kleinster_wert untergrenze "
    "untere_grenze valeur_min valeur_minimale borne_inférieure valor_mínimo límite_inferior mínimo desde van "
    "minimumwaarde ondergrens laagste_waarde",
    "max": "max maximum upper high upper_bound upper_limit highest largest most max_value maximum_value highest_value "
    "valid_max maximum_allowed text_validation_max to bis höchstwert hoechstwert maximalwert größter_wert "
    "groesster_wert obergrenze obere_grenze valeur_max valeur_maximale borne_supérieure valor_máximo "
    "límite_superior máximo hasta tot maximumwaarde bovengrens hoogste_waarde",
    "range": "range ranges valid_range value_range allowed_range bounds limits interval min_max wertebereich bereich "
    "gültigkeitsbereich intervall plage plage_de_valeurs intervalle rango rango_de_valores intervalo bereik "
    "waardebereik",
    "values": "values allowed_values categories levels codes enum enumeration domain valid_values permitted_values "
    "possible_values legal_values value_labels allowed allowed_codes allowed_value codes_allowed allowable_values "
    "permitted permissible_values accepted_values valid valid_codes value_codes value_list value_set code_list "
    "codelist coding options valid_options choices response_options list_of_values werte werteliste ausprägung "
    "ausprägungen auspraegungen kategorien zulässige_werte zulaessige_werte erlaubte_werte gültige_werte "
    "mögliche_werte kodierung codierung valeurs valeurs_possibles valeurs_autorisées valeurs_permises modalités "
    "catégories valores valores_permitidos valores_posibles valores_válidos categorías códigos opciones "
    "waarden toegestane_waarden mogelijke_waarden geldige_waarden waardenlijst categorieën coderingen",
    "description": "description desc label field_label definition meaning comment comments note notes field_note "
    "details remark remarks explanation variable_label column_description long_name question what_it_is "
    "what_it_means was_es_ist beschreibung bezeichnung "
    "bedeutung bemerkung bemerkungen kommentar anmerkung erläuterung erklärung hinweis libellé signification "
    "commentaire commentaires remarque remarques définition descripción significado comentario comentarios "
    "observaciones etiqueta definición omschrijving betekenis opmerking opmerkingen toelichting uitleg definitie",
    "nullable": "nullable null nulls is_nullable allow_null missing missing_allowed nulls_allowed null_allowed "
    "allows_null allow_nulls optional blank blanks may_be_missing may_be_empty can_be_null leer leer_erlaubt "
    "darf_leer_sein fehlend null_erlaubt nullwerte facultatif peut_être_vide nul vide opcional nulo nulos "
    "permite_nulos vacío leeg mag_leeg_zijn ontbreekt optioneel",
    "required": "required required_field not_null mandatory is_required compulsory pflicht pflichtfeld erforderlich "
    "obligatorisch obligatoire requis obligatorio requerido verplicht vereist",
    "decimals": "decimals decimal_places number_of_decimals decimal_digits round rounded digits_after_point "
    "nachkommastellen dezimalstellen décimales nombre_de_décimales número_de_decimales decimalen aantal_decimalen",
    "zero_inflated": "zero_inflated zeros zero_inflation many_zeros mostly_zeros zeroes",
    "unique": "unique is_unique unique_values eindeutig uniek",
    "scale": "scale",
    "resolution": "resolution granularity time_resolution",
    "formula": "formula derivation calculation expression computed_as calculated_as formel berechnung formule calcul "
    "fórmula cálculo berekening",
    "of": "of lookup lookup_of label_of name_of derived_from looked_up_by",
}
"""What a draft reads, and the words for it, with _ for whatever stands between the letters of a heading."""
UNITS = (
    "unit units unit_of_measure units_of_measure uom measured_in einheit einheiten maßeinheit unité unités unidad "
    "eenheid eenheden"
)


def folded(heading: str) -> str:
    """Write a heading in small letters without accents, with _ for whatever else stands between them."""
    letters = (letter for letter in normalize("NFKD", heading.casefold()) if not combining(letter))
    return re.sub(r"\W+", "_", "".join(letters)).strip("_")


IGNORED = frozenset(map(folded, UNITS.split()))
"""Headings that a draft has no use for, and that hide nothing from it."""
MEANT = {folded(word): meaning for meaning, words in HEADINGS.items() for word in words.split()}
LANGUAGES = "English, German, French, Spanish and Dutch"
"""Those whose words for headings, types and phrases are read."""
SECOND = frozenset(("format", "formato"))
"""Headings that stand for a type alone, and beside one that does for how its values are written."""
