"""A code book says the same in each language that is read, and of another one what signs alone say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmodels.authoring.draft import PublicFacts, draft

NAMES = "key,member,opened,closed,region,excess,base,fee,total,paid,visits,score,note"
ENGLISH = """\
variable;type;allowed values;description
key;text;;claim number, unique
member;text;;pseudonym of the insured person, several rows of each
opened;date;;day of opening, 2018-01-01 to 2024-12-31
closed;date;;"day of closing; empty = still open"
region;code;1=north|2=south|3=east;region of the policy
excess;;;0, 150, 300 or 500 euros
base;amount;;between 1 and 5000 euros
fee;amount;;10 % of base, to the cent
total;amount;;base plus fee
paid;yes/no;;was it paid?
visits;whole number;0-40;number of visits
score;number;0 to 10;satisfaction, one decimal
note;free text;;remarks
"""
GERMAN = """\
Variable;Typ;Zulässige Werte;Beschreibung
key;Text;;Fallnummer, eindeutig
member;Text;;Pseudonym der versicherten Person, mehrere Zeilen
opened;Datum;;Tag der Eröffnung, 2018-01-01 bis 2024-12-31
closed;Datum;;"Tag des Abschlusses; leer = noch offen"
region;Code;1=Nord|2=Süd|3=Ost;Region der Police
excess;;;0, 150, 300 oder 500 Euro
base;Betrag;;zwischen 1 und 5000 Euro
fee;Betrag;;10 % von base, auf Cent gerundet
total;Betrag;;base plus fee
paid;ja/nein;;Wurde gezahlt?
visits;Ganzzahl;0-40;Anzahl der Besuche
score;Zahl;0 bis 10;Zufriedenheit, eine Nachkommastelle
note;Freitext;;Bemerkungen
"""
FRENCH = """\
variable;type;valeurs possibles;description
key;texte;;numéro du sinistre, unique
member;texte;;pseudonyme de la personne assurée
opened;date;;jour d'ouverture, du 2018-01-01 au 2024-12-31
closed;date;;"jour de clôture; vide = encore ouvert"
region;code;1=nord|2=sud|3=est;région du contrat
excess;;;0, 150, 300 ou 500 euros
base;montant;;entre 1 et 5000 euros
fee;montant;;10 % de base, arrondi au centime
total;montant;;base plus fee
paid;oui/non;;est-il payé ?
visits;nombre entier;0-40;nombre de visites
score;nombre;0 à 10;satisfaction, une décimale
note;texte libre;;remarques
"""
DUTCH = """\
variabele;type;toegestane waarden;omschrijving
key;tekst;;schadenummer, uniek
member;tekst;;pseudoniem van de verzekerde
opened;datum;;dag van opening, 2018-01-01 tot en met 2024-12-31
closed;datum;;"dag van sluiting; leeg = nog open"
region;code;1=noord|2=zuid|3=oost;regio van de polis
excess;;;0, 150, 300 of 500 euro
base;bedrag;;tussen 1 en 5000 euro
fee;bedrag;;10 % van base, afgerond op centen
total;bedrag;;base plus fee
paid;ja/nee;;is er betaald?
visits;geheel getal;0-40;aantal bezoeken
score;getal;0 tot 10;tevredenheid, een decimaal
note;vrije tekst;;opmerkingen
"""
POLISH = "zmienna;typ;dozwolone wartości;opis\nsex;tekst;k|m;płeć\nage;liczba;0-120;wiek\n"


def drafted(folder: Path, text: str, names: str = NAMES) -> tuple[str, dict[str, Any]]:
    (folder / "book.csv").write_text(text, encoding="utf-8")
    (folder / "data.csv").write_text(names + "\n", encoding="utf-8")
    made = draft(folder / "data.csv", public_facts=PublicFacts(folder / "book.csv"))
    return made, yaml.safe_load(made)["columns"]


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, FRENCH, DUTCH], ids=["English", "German", "French", "Dutch"])
def test_a_code_book_says_the_same_in_each_language(tmp_path: Path, text: str) -> None:
    made, columns = drafted(tmp_path, text)
    assert "WARNING" not in made and "not read" not in made
    assert columns["key"] == {"type": "identifier", "unique": True} and columns["note"] == {"type": "identifier"}
    assert columns["member"] == {"type": "identifier", "confirm": "TODO"}
    assert [str(columns["opened"][end]) for end in ("min", "max")] == ["2018-01-01", "2024-12-31"]
    assert columns["closed"]["nullable"] and columns["closed"]["confirm"] == "TODO"
    assert columns["region"] == {"type": "categorical", "values": [1, 2, 3]}
    assert columns["excess"] == {"type": "categorical", "values": [0, 150, 300, 500], "confirm": "TODO"}
    assert columns["base"] == {"type": "number", "min": 1.0, "max": 5000.0, "round": 2}
    formulas = {name: columns[name]["formula"] for name in ("fee", "total")}
    assert formulas == {"fee": "0.1 * base", "total": "base + fee"}
    assert columns["fee"]["confirm"] == columns["total"]["confirm"] == "TODO" and columns["total"]["round"] == 2
    assert columns["paid"]["type"] == "boolean" or len(columns["paid"]["values"]) == 2
    assert columns["visits"] == {"type": "integer", "min": 0, "max": 40}
    assert columns["score"] == {"type": "number", "min": 0.0, "max": 10.0, "round": 1, "zero_inflated": True}


def test_of_a_language_that_is_not_read_signs_alone_are_taken_and_a_sentence_says_which_are(tmp_path: Path) -> None:
    made, columns = drafted(tmp_path, POLISH, "sex,age")
    assert "and usual words for these in English, German, French, Spanish and Dutch" in made
    assert "not read: type liczba" in made and columns["sex"]["values"] == ["k", "m"]
    assert columns["age"] == {
        "type": "integer",
        "min": 0,
        "max": 120,
        "confirm": "TODO",
    }  # whole bounds, to be confirmed


def test_a_word_for_and_in_one_language_is_none_in_another(tmp_path: Path) -> None:
    _, columns = drafted(tmp_path, "variable;description\na;3 en 2020\nb;one of the family\nc;3 of them\n", "a,b,c")
    assert all("max" not in one and "values" not in one for one in columns.values())


def test_whole_hundreds_have_no_cents(tmp_path: Path) -> None:
    _, columns = drafted(tmp_path, "variable;type;description\na;amount;0 to 500000, whole hundreds\n", "a,b")
    assert columns["a"]["round"] == 0
