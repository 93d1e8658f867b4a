"""An officer signs that a hand-off may leave, after a look at it; nothing else is taken for that signature."""

import base64
import io
import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import nacre
from dpmodels.errors import InvalidArgument
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.hand_off.signature import NOBODY_AGREED, OFFICER_SIGNATURE, SIGNATURE, agree, by_one_key, sign_manifest
from dpmodels.hand_off.verify import verify_hand_off
from flows.command_line.show import NOT_TO_LEAVE
from tests.hand_off.make_golden import GOLDEN
from tests.hand_off.make_golden import approved as make_approved
from tests.kit.errors import refused
from tests.kit.support import run_cli, write_key


def first_words(out: str) -> str:
    """Return the verdict, with what is said beside it."""
    return out.split("files:")[0].replace("\n", " ")


@pytest.fixture
def hand_off(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "LAYOUT-26" / "users", tmp_path / "hand-off"))


def test_an_officer_signs_that_a_hand_off_may_leave_and_whoever_verifies_it_sees_who_and_when(
    tmp_path: Path, hand_off: Path
) -> None:
    key, public = write_key(tmp_path / "dana.pem")
    assert json.loads(run_cli("verify", hand_off, "--json")[1])["may_leave"] == NOBODY_AGREED
    before = verify_hand_off(hand_off).files
    code, out, err = run_cli("verify", hand_off, "--officer-key", public)
    assert code == NOT_TO_LEAVE and out.startswith("NOT APPROVED: ")  # though the account named no officer
    code, out, err = run_cli("approve", hand_off, "--key", key, "--yes", "--reason", "DPIA 2026-17")
    assert code == 0 and "you signed that the files of" in out.replace("\n", " "), err
    said = f"on {datetime.now(UTC).date()}, by the signer's own word of the day, in the words “DPIA 2026-17”, by "
    checked = verify_hand_off(hand_off, officer_key=public)  # no officer approved the charge: that of all files counts
    assert checked.agreed.startswith(f"{said}the officer's key you named") and checked.faults == []
    code, out, _ = run_cli("verify", hand_off, "--officer-key", public)  # nobody signed who made it
    assert code == 3 and out.startswith("CONSISTENT ONLY: officer: yes; maker: not proved. The officer whom you named")
    assert "vouches for it" not in out and "files may leave: officer: yes; maker: not proved; " in first_words(out)
    assert "they are the maker's needs the maker's signature, which is not here" in first_words(out)
    unnamed = first_words(run_cli("verify", hand_off)[1])  # anybody could have signed so
    unproved = "who signed as an officer is not proved without --officer-key; open when signed: of 20 answers 20 blank"
    assert f"files may leave: not known: {unproved}" in unnamed and "yes" not in unnamed
    agreed = json.loads(run_cli("verify", hand_off, "--json")[1])["may_leave"]
    assert agreed.startswith(f"{said}a key whose SHA-256 is") and agreed.endswith("with --officer-key")
    assert verify_hand_off(hand_off).files == before


def test_python_signs_as_the_command_does(tmp_path: Path, hand_off: Path) -> None:
    key, public = write_key(tmp_path / "dana.pem")
    with refused(InvalidArgument, r"the reason goes into `why` .* `nacre.approve\(FOLDER, KEY, reason=REASON\)`$"):
        nacre.approve("no-such-run", key, reason="DPIA 2026-17", home=tmp_path)
    with refused(nacre.ArtifactError, "no-such-run"):
        nacre.approve("no-such-run", key, home=tmp_path)
    signed = nacre.approve(nacre.Result(hand_off), key, reason="DPIA 2026-17")
    assert signed["file"] == str(hand_off / OFFICER_SIGNATURE) and len(signed["key"]) == 64
    agreed = verify_hand_off(hand_off, officer_key=public).agreed
    assert "“DPIA 2026-17”, by the officer's key you named" in agreed
    (hand_off / "schema.yaml").write_text("name: other")
    with refused(nacre.ArtifactError, "is not to leave as it is"):
        nacre.approve(hand_off, key)


def test_neither_another_key_nor_another_manifest_nor_another_day_passes(tmp_path: Path, hand_off: Path) -> None:
    key, _ = write_key(tmp_path / "dana.pem")
    _, other = write_key(tmp_path / "eve.pem")
    assert run_cli("approve", hand_off, "--key", key, "--yes")[0] == 0
    signed = (hand_off / OFFICER_SIGNATURE).read_text()
    faults = " ".join(verify_hand_off(hand_off, officer_key=other).faults)
    assert "the key you named (--officer-key) is not the one that signed that the files may leave" in faults
    for content in (signed.replace(str(datetime.now(UTC).date()), "2019-01-01"), "{}", "[" * 3000, signed + " "):
        (hand_off / OFFICER_SIGNATURE).write_text(content)
        assert verify_hand_off(hand_off).faults == [
            f"{OFFICER_SIGNATURE} is not an officer's signature of this manifest, with this day and reason"
        ]
    elsewhere = Path(shutil.copytree(GOLDEN / "FORMAT-13" / "declared", tmp_path / "elsewhere"))
    (elsewhere / OFFICER_SIGNATURE).write_text(signed)
    assert verify_hand_off(elsewhere).faults == [
        f"{OFFICER_SIGNATURE} is not an officer's signature of this manifest, with this day and reason"
    ]


def test_the_signature_of_an_officer_is_not_taken_for_that_of_who_made_it_nor_the_other_way(
    tmp_path: Path, hand_off: Path
) -> None:
    key, public = write_key(tmp_path / "dana.pem")
    assert run_cli("approve", hand_off, "--key", key, "--yes")[0] == 0
    record = json.loads((hand_off / OFFICER_SIGNATURE).read_text())
    del record["day"], record["reason"], record["key_sha256"]
    (hand_off / SIGNATURE).write_text(json.dumps(record, indent=1))
    assert verify_hand_off(hand_off, public).faults == [f"{SIGNATURE} is not a signature of this manifest"]


def test_a_maker_who_is_the_officer_as_well_is_remarked(tmp_path: Path, hand_off: Path) -> None:
    (key, public), (other, _) = write_key(tmp_path / "dana.pem"), write_key(tmp_path / "eve.pem")
    sign_manifest(hand_off, other)
    agree(hand_off, key, date(2026, 1, 2))
    checked = verify_hand_off(hand_off)
    assert checked.one_key == "" and "one_key" not in checked.facts
    assert checked.facts["two_keys"] == "maker and officer signed with two different keys"
    sign_manifest(hand_off, key)
    said = "was signed with the key that approved that the files may leave: maker and officer are one"
    assert said in verify_hand_off(hand_off, public, officer_key=public).one_key
    out = run_cli("verify", hand_off)[1]
    assert "one key: the manifest was signed" in " ".join(out.partition("declared, and not checked")[0].split())
    named = first_words(run_cli("verify", hand_off, "--public-key", public, "--officer-key", public)[1])
    assert "files may leave: yes; open when signed: " in named
    assert "; because the key that you named signed it, which is the key of the maker too" in named
    (hand_off / OFFICER_SIGNATURE).unlink()
    assert verify_hand_off(hand_off).one_key == ""
    approver = json.loads((hand_off / SIGNATURE).read_text())["public_key"]
    assert "with the key that approved the charge: maker and officer are one" in by_one_key(hand_off, approver)


def test_who_approved_the_charge_signs_that_the_files_may_leave_and_nobody_else(tmp_path: Path, hand_off: Path) -> None:
    approved = Path(shutil.copytree(GOLDEN / "LAYOUT-26" / "laid-out", tmp_path / "approved"))
    key, _ = write_key(tmp_path / "eve.pem")
    code, out, err = run_cli("approve", approved, "--key", key)  # refused before it shows what is to be signed
    assert (
        code == 1
        and out == ""
        and len(err.splitlines()) == 1
        and "must be that of the officer who approved the charge, whose SHA-256 is" in err
    )
    assert not (approved / OFFICER_SIGNATURE).exists()
    agree(approved, key, date(2026, 1, 1))
    (fault,) = verify_hand_off(approved).faults
    assert fault == f"{OFFICER_SIGNATURE} is by another key than the charge was approved with"
    (approved / OFFICER_SIGNATURE).unlink()
    dana = tmp_path / "dana.pub"
    raw = base64.b64decode(read_manifest(approved).approved.public_key)
    dana.write_bytes(
        Ed25519PublicKey.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    code, out, _ = run_cli("verify", approved, "--officer-key", dana)
    said = first_words(out)
    assert code == NOT_TO_LEAVE and said.startswith("NOT APPROVED: no officer signed that these files may leave")
    assert "unchanged, and nobody whom you named vouches for them" in said and "leave out" not in said
    code, out, _ = run_cli("verify", approved)
    assert code == 3 and out.splitlines()[0].endswith(
        "; not let leave so far: no officer signed that they may; one signed for the charge alone"
    )
    assert not verify_hand_off(approved).may_not_leave
    for reason in ("two\nlines", "x" * 301):
        code, _, err = run_cli("approve", hand_off, "--key", key, "--yes", "--reason", reason)
        assert code == 1 and "reason" in err and not (hand_off / OFFICER_SIGNATURE).exists()
    code, _, err = run_cli("approve", "no-such-run", "--key", key, "--reason", "x")
    said = err.replace("\n", " ")
    assert code == 1 and "RUN names no folder" in said and "`nacre approve FOLDER --key KEY --reason" in said


def test_whoever_names_the_officer_s_key_is_told_by_the_exit_code_until_the_officer_lets_the_files_leave(
    tmp_path: Path,
) -> None:
    """A key that vouches for the manifest is not enough: the officer was asked for, and has seen no row."""
    folder = make_approved(tmp_path / "run")
    signer, signers = write_key(tmp_path / "signer.pem")
    sign_manifest(folder, signer)
    keys = ("--public-key", signers, "--officer-key", tmp_path / "run" / "dana.pub")
    code, out, err = run_cli("verify", folder, *keys)
    assert code == NOT_TO_LEAVE == 4, err
    assert out.startswith("NOT APPROVED: ") and "nacre approve FOLDER" in first_words(out)
    assert "They are unchanged, and signed by the key you named." in first_words(out)
    code, out, _ = run_cli("verify", folder, *keys, "--json")
    assert code == NOT_TO_LEAVE and json.loads(out)["may_leave"] == NOBODY_AGREED
    assert json.loads(out)["verdict"] == nacre.verify(folder, signers, keys[-1]).verdict == "NOT APPROVED"
    code, out, _ = run_cli("verify", folder, *keys[:2])
    assert code == 0 and "no officer signed it; exit code 0 is of the files alone" in first_words(out)
    assert run_cli("approve", folder, "--key", tmp_path / "run" / "dana.pem", "--yes")[0] == 0
    code, out, _ = run_cli("verify", folder, *keys[:2])
    unknown = "; who signed as an officer is not proved without --officer-key"
    at_once = "VERIFIED, but whether they may leave is not known: files and privacy claim are whole"
    assert code == 0 and out.splitlines()[0].startswith(at_once)
    assert out.splitlines()[0].endswith(unknown) and " yes" not in first_words(out)
    inside = "until then: inside, sent to nobody and not used; next: get the officer's key from the officer"
    assert " ".join(out.partition("beyond any check of files")[2].split()).partition(inside)[2].endswith("have signed")
    assert json.loads(run_cli("verify", folder, *keys[:2], "--json")[1])["next"].startswith(inside)
    wrong = first_words(run_cli("verify", folder, *keys[:2], "--officer-key", signers)[1])
    assert wrong.startswith("WRONG KEY: the maker's key is right; the key you named with --officer-key is not the one")
    code, out, _ = run_cli("verify", folder, *keys)
    assert "exit code 0" not in first_words(out) and "two keys: maker and officer signed with two different" in out
    assert out.splitlines()[0].endswith("; the officer whom you named lets them leave")
    assert (
        code == 0
        and first_words(out).startswith("VERIFIED: ")
        and "files may leave: yes; open when signed: " in first_words(out)
        and "not proved to be one person; because an officer signed it, by the key that you named" in first_words(out)
        and " ".join(out.split()).endswith("next: send all files of the folder together, officer.sig among them")
    )
    assert "as the manifest has them, beside manifest.json, manifest.sig, officer.sig" in " ".join(out.split())
    declared = out.partition("declared, and not checked")[2].partition("beyond any check")[0]
    assert " of 20 answers that the pages ask for: " in declared.partition("not declared: ")[2]
    assert "persons: the unit is not proved to be one person" in declared


def test_a_link_in_the_place_of_the_signature_is_not_written_through(tmp_path: Path, hand_off: Path) -> None:
    key, _ = write_key(tmp_path / "dana.pem")
    (tmp_path / "mine").write_text("mine")
    (hand_off / OFFICER_SIGNATURE).symlink_to(tmp_path / "mine")
    assert run_cli("approve", hand_off, "--key", key, "--yes")[0] == 0
    assert (tmp_path / "mine").read_text() == "mine" and not (hand_off / OFFICER_SIGNATURE).is_symlink()
    assert verify_hand_off(hand_off).faults == []


def test_what_is_not_whole_is_not_signed_for_and_who_does_not_agree_signs_nothing(
    tmp_path: Path, hand_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = write_key(tmp_path / "dana.pem")
    code, out, err = run_cli("approve", hand_off, "--key", tmp_path / "none.pem")
    assert code == 1 and "it does not exist" in err and "Sign that" not in out + err  # before it asks
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    code, _, err = run_cli("approve", hand_off, "--key", key)
    assert code != 0 and not (hand_off / OFFICER_SIGNATURE).exists()
    (hand_off / "report.html").write_text("else")
    code, _, err = run_cli("approve", hand_off, "--key", key, "--yes")
    assert code == 1 and "is not to leave as it is: report.html was changed" in err.replace("\n", " ")
    assert not (hand_off / OFFICER_SIGNATURE).exists()
