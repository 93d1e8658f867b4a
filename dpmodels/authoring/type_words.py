"""The words for types in databases, data frames and data dictionaries: English, German, French, Spanish and Dutch."""

import re

from dpmodels.authoring.headings import folded

TYPE_WORDS = {
    "integer": "integer int integers whole_number whole_numbers whole bigint smallint tinyint mediumint hugeint uint "
    "unsigned_integer unsigned_int long short byte year serial bigserial smallserial count natural_number ganzzahl "
    "ganzzahlen ganze_zahl ganze_zahlen ganzzahlig anzahl jahr entier entiers nombre_entier année entero enteros "
    "número_entero año geheel_getal gehele_getallen heel_getal aantal jaartal",
    "number": "number numbers numeric numerical decimal decimals dec decimal_number float double double_precision real "
    "real_number single continuous money currency amount price eur euro euros usd dollar dollars gbp chf "
    "percent percentage fixed_point zahl zahlen numerisch "
    "dezimal dezimalzahl kommazahl gleitkommazahl fließkommazahl reelle_zahl betrag geldbetrag währung preis prozent "
    "stetig nombre numérique décimal nombre_décimal nombre_réel réel flottant montant prix monnaie pourcentage continu "
    "número numérico número_decimal flotante importe monto precio moneda porcentaje continuo "
    "getal getallen numeriek decimaal decimaal_getal kommagetal bedrag geldbedrag prijs procent",
    "text": "text string str strings large_string char nchar varchar nvarchar character characters character_varying "
    "varying clob object short_text long_text tinytext mediumtext alphanumeric zeichenkette zeichen zeichenfolge "
    "alphanumerisch texte chaîne chaîne_de_caractères caractère caractères alphanumérique texto cadena "
    "cadena_de_texto cadena_de_caracteres carácter alfanumérico tekst tekenreeks alfanumeriek",
    "category": "category categories categorical enum enumeration factor nominal ordinal code coded codes choice "
    "single_choice option options dropdown drop_down radio pick_list list_of_values kategorie kategorien kategorial "
    "kategoriell auswahl auswahlliste einfachauswahl aufzählung catégorie catégories catégoriel catégorielle choix "
    "liste énumération facteur categoría categorías categórico categórica opción opciones lista enumeración código "
    "categorie categorieën categorisch keuze keuzelijst opsomming",
    "boolean": "boolean bool bit logical flag indicator yes_no yn true_false dichotomous wahrheitswert boolesch "
    "logisch ja_nein j_n wahr_falsch booléen booléenne logique oui_non o_n vrai_faux booleano booleana lógico sí_no "
    "s_n verdadero_falso ja_nee waar_onwaar booleaans logisch_veld",
    "date": "date dates day calendar_date datum jour fecha día dag kalenderdatum",
    "moment": "datetime date_and_time timestamp timestamptz timestamp_tz timestamp_ntz timestamp_ltz timestamp_s "
    "timestamp_ms timestamp_ns smalldatetime moment instant zeitpunkt zeitstempel datum_uhrzeit datum_und_uhrzeit "
    "datum_und_zeit date_et_heure date_heure horodatage horodate fecha_hora fecha_y_hora marca_de_tiempo tijdstip "
    "tijdstempel datum_tijd datum_en_tijd",
    "identifier": "id identifier identifiers uuid guid uniqueidentifier key primary_key foreign_key autonumber "
    "free_text memo narrative comment comments schlüssel primärschlüssel fremdschlüssel kennung bezeichner freitext "
    "identifiant clé clé_primaire texte_libre identificador clave clave_primaria texto_libre "
    "sleutel primaire_sleutel vrije_tekst",
}
"""The kinds of column, and the words for each, with _ for whatever stands between the letters of a type."""


def _compact(word: str) -> str:
    return folded(word).replace("_", "")


WORDS_FOR_MONEY = (
    "money currency amount price eur euro euros usd dollar dollars gbp chf betrag geldbetrag währung preis montant "
    "prix monnaie importe monto precio moneda bedrag geldbedrag prijs"
)
"""The words for numbers that are money, and so have cents."""
MONEY = frozenset(map(_compact, WORDS_FOR_MONEY.split()))
PRIMARY = frozenset(
    map(_compact, ("primary_key", "primärschlüssel", "clé_primaire", "clave_primaria", "primaire_sleutel"))
)
KIND_OF = {_compact(word): kind for kind, words in TYPE_WORDS.items() for word in words.split()}


def is_primary(word: str) -> bool:
    """Tell whether a word for a type says that a column names the rows of its table, alone or with others."""
    return _compact(word) in PRIMARY


def is_money(words: str) -> bool:
    """Tell whether the name of a type begins with a word for money, and none of it says that numbers are whole."""
    letters = [_compact(word) for word in re.findall(r"[^\W\d_]+", words)]
    return letters[:1] != [] and letters[0] in MONEY and not any(KIND_OF.get(one) == "integer" for one in letters)


def names_money(words: str) -> bool:
    """Tell whether a description has a word or a sign for money."""
    return bool(re.search("[€$£]", words)) or any(_compact(word) in MONEY for word in re.findall(r"[^\W\d_]+", words))


def kind_of(word: str) -> str | None:
    """Return the kind of column that a word stands for, however it is spelled: ``whole-number``, ``Int64``, ``Y / N``.

    A word for no kind of column has none.
    """
    letters = _compact(word)
    return KIND_OF.get(letters) or KIND_OF.get(re.sub(r"\d+$", "", letters).removesuffix("type"))
