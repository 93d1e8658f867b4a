"""Who vouches for a hand-off: keys that were named, keys that anybody made, and keys for which anybody signs."""

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

import nacre
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.signature import SIGNATURE, sign_manifest
from dpmodels.hand_off.verification import CONSISTENT, UNAPPROVED, VERIFIED, WRONG_KEY
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.keys import PRIME, SMALL_ORDER, fingerprint, is_weak, key_text, private_key, public_key, signed_by
from dpmodels.ledger.approval import ApprovalRequest
from tasks.run import signing
from tests.hand_off.make_golden import GOLDEN
from tests.kit.errors import refused
from tests.kit.support import digest, run_cli, write_key

pytestmark = pytest.mark.processes

APPROVED = GOLDEN / "FORMAT-6" / "declared"
D = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME


def weak_encodings() -> list[bytes]:
    """Return every encoding of a point of small order: eight as RFC 8032 writes them, six that it does not."""
    whole = [*SMALL_ORDER, PRIME, PRIME + 1]
    both = [y.to_bytes(32, "little") for y in whole]
    return both + [(y | 1 << 255).to_bytes(32, "little") for y in whole]


def double(point: tuple[int, int]) -> tuple[int, int]:
    x, y = point
    k = D * x * x * y * y % PRIME
    over, under = pow(1 + k, PRIME - 2, PRIME), pow(1 - k, PRIME - 2, PRIME)
    return 2 * x * y * over % PRIME, (y * y + x * x) * under % PRIME


def point_of(y: int) -> tuple[int, int]:
    square = (y * y - 1) * pow(D * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    assert (x * x - square) % PRIME == 0
    return x, y


def test_nothing_of_a_strangers_hand_off_is_opened_but_manifest_and_signature(tmp_path: Path) -> None:
    hand_off, (key, public) = tmp_path / "own", write_key(tmp_path / "eve.pem")
    _, named = write_key(tmp_path / "dana.pem")
    shutil.copytree(APPROVED, hand_off)
    for file in hand_off.rglob("*.*"):
        if file.name != MANIFEST:
            file.write_bytes(b"x")
    (fault,) = verify_hand_off(hand_off, named).faults
    assert fault == "the manifest is not signed"
    sign_manifest(hand_off, key)
    (fault,) = verify_hand_off(hand_off, named).faults
    assert "the key you named (--public-key) is not the one that signed the manifest" in fault
    (fault,) = verify_hand_off(hand_off, public, officer_key=named).faults
    assert "the key you named (--officer-key) is not the one that signed" in fault
    assert len(verify_hand_off(hand_off, public).faults) > 5


def test_the_listed_points_are_those_of_small_order() -> None:
    for y in SMALL_ORDER:
        assert double(double(double(point_of(y)))) == (0, 1)


def test_a_key_for_which_anybody_can_sign_is_refused_wherever_one_is_read(tmp_path: Path) -> None:
    """With the neutral element as key, R and S of the neutral element sign every message: OpenSSL takes them."""
    neutral, signature = (1).to_bytes(32, "little"), (1).to_bytes(32, "little") + bytes(32)
    public = base64.b64encode(neutral).decode()
    Ed25519PublicKey.from_public_bytes(neutral).verify(signature, b"whatever")
    assert not signed_by(public, base64.b64encode(signature).decode(), b"whatever")
    assert len(set(weak_encodings())) == 14
    for number, raw in enumerate(weak_encodings()):
        pem = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + raw).decode()
        file = tmp_path / f"{number}.pub"
        file.write_text(f"-----BEGIN PUBLIC KEY-----\n{pem}\n-----END PUBLIC KEY-----\n")
        assert is_weak(raw)
        with refused(InvalidArgument, name="public_key"):
            public_key(file)
    hand_off = tmp_path / "own"
    shutil.copytree(APPROVED, hand_off)
    record = {"algorithm": "ed25519", "public_key": public, "signature": base64.b64encode(signature).decode()}
    (hand_off / SIGNATURE).write_text(json.dumps(record, indent=1))
    assert verify_hand_off(hand_off).faults == [f"{SIGNATURE} is not a signature of this manifest"]
    assert not is_weak(Ed25519PrivateKey.generate().public_key().public_bytes_raw())


def test_the_verdict_tells_who_vouches_and_so_does_the_exit_status(tmp_path: Path) -> None:
    hand_off, (key, public) = tmp_path / "own", write_key(tmp_path / "key.pem")
    shutil.copytree(APPROVED, hand_off)
    code, out, _ = run_cli("verify", hand_off)
    assert code == 3 and out.startswith("CONSISTENT ONLY: ") and verify_hand_off(hand_off).verdict == CONSISTENT
    sign_manifest(hand_off, key)
    code, out, _ = run_cli("verify", hand_off)
    assert code == 3 and out.startswith("CONSISTENT ONLY: ") and fingerprint(key_text(public_key(public))) in out
    code, out, _ = run_cli("verify", hand_off, "--public-key", public)
    assert code == 0 and out.startswith("VERIFIED: ") and nacre.verify(hand_off, public).verdict == VERIFIED
    code, out, _ = run_cli("verify", hand_off, "--public-key", public, "--json")
    assert code == 0 and json.loads(out)["verdict"] == VERIFIED
    blocks = re.split(
        r"^(checked|declared, and not checked|beyond any check of files)$", run_cli("verify", hand_off)[1], flags=re.M
    )
    assert "budget: " in blocks[2] and "signature: " in blocks[2] and "purpose: " not in blocks[2]
    assert "purpose: " in blocks[4] and "account: " in blocks[4] and blocks[6].strip().startswith("not checked: ")
    other = write_key(tmp_path / "other.pem")[1]
    code, out, err = run_cli("verify", hand_off, "--public-key", other, "--json")
    assert code == 1 and json.loads(out)["verdict"] == WRONG_KEY and err == ""
    assert "the key you named (--public-key)" in " ".join(json.loads(out)["faults"])
    code, out, err = run_cli("verify", hand_off, "--public-key", other)
    assert code == 1 and out.startswith(
        "WRONG KEY: the key you named with --public-key is not the one that signed the manifest; no file was checked\n"
        "files may leave: not known; until then: inside; next: check that key; if it is the right one, somebody else"
    )
    assert err == "" and out.count("is not the one") == 1 and "not as it was" not in out  # said once
    with refused(ArtifactError, "WRONG KEY: the key you named with"):
        nacre.verify(hand_off, other)
    (hand_off / "report.html").write_text("x")
    code, out, _ = run_cli("verify", hand_off, "--public-key", other)  # what a stranger signed is not looked at
    assert code == 1 and "no file was checked" in out and "VERIFIED" not in out
    code, out, err = run_cli("verify", hand_off)
    assert code == 1 and re.match(r"FAULTY: \d faults?\nfiles may leave: no, because it is not as it was made", out)


def test_an_approval_by_anybody_s_key_says_so(tmp_path: Path) -> None:
    """Whoever makes a hand-off up signs it as Dana with a key of their own."""
    hand_off, (key, public) = tmp_path / "own", write_key(tmp_path / "mallory.pem")
    shutil.copytree(APPROVED, hand_off)
    whole = json.loads((hand_off / MANIFEST).read_text())
    dana = whole["approved"]["public_key"]
    assert (
        fingerprint(dana) in verify_hand_off(hand_off).approved
        and "--officer-key" in verify_hand_off(hand_off).approved
    )
    dana_file = tmp_path / "dana.pub"
    raw = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + base64.b64decode(dana)).decode()
    dana_file.write_text(f"-----BEGIN PUBLIC KEY-----\n{raw}\n-----END PUBLIC KEY-----\n")
    found = verify_hand_off(hand_off, officer_key=dana_file)
    assert found.faults == [] and "you named" in found.approved and found.verdict == UNAPPROVED
    asked = ApprovalRequest(
        whole["approved"]["ledger"], whole["ledger"]["account"], whole["run"], tuple(whole["approved"]["plans"])
    )
    forged = asked.approve("Dana", key).model_dump(mode="json")
    whole["approved"] = forged
    card = json.loads((hand_off / "model-card.json").read_text())
    card["hand_off"]["approved"]["public_key"] = forged["public_key"]
    (hand_off / "model-card.json").write_text(json.dumps(card))
    whole["artifacts"]["model-card.json"] = digest(hand_off / "model-card.json")
    (hand_off / MANIFEST).write_text(json.dumps(whole))
    found = verify_hand_off(hand_off)
    assert found.faults == [] and fingerprint(key_text(public_key(public))) in found.approved
    code, out, _ = run_cli("verify", hand_off, "--officer-key", dana_file)
    assert code == 1 and "WRONG KEY: the key you named with --officer-key is not the one that signed the charge;" in out
    unsigned = GOLDEN / "FORMAT-2" / "fitted-again"
    found = verify_hand_off(unsigned, officer_key=dana_file)
    assert found.faults == [] and found.verdict == UNAPPROVED  # what nobody approved is not broken


def test_the_fingerprint_is_what_openssl_prints(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    _, public = write_key(tmp_path / "key.pem")
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", public, "-outform", "DER"], check=True, capture_output=True
    ).stdout
    said = subprocess.run(["openssl", "dgst", "-sha256"], input=der, check=True, capture_output=True).stdout.decode()
    assert fingerprint(key_text(public_key(public))) in said


def test_a_public_key_in_a_private_ones_place_is_called_that(tmp_path: Path) -> None:
    _, public = write_key(tmp_path / "key.pem")
    for mode in (0o644, 0o600):
        public.chmod(mode)
        with refused(InvalidArgument, "public one", name="key"):
            private_key(public, "key")


def test_a_private_key_in_a_public_ones_place_is_called_that_and_left_unread(tmp_path: Path) -> None:
    words = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PUBLIC KEY")
    for word in words:
        (key := tmp_path / "own.pem").write_text(f"-----BEGIN {word}-----\nMC4C\n-----END {word}-----\n")
        with refused(InvalidArgument, name="public_key") as told:
            public_key(key)
        assert ("this file holds a private key" in str(told.value)) == ("PRIVATE" in word)
        assert "MC4C" not in str(told.value)


def test_a_private_key_that_others_may_have_read_or_put_there_is_refused(tmp_path: Path) -> None:
    key, _ = write_key(tmp_path / "key.pem")
    assert private_key(key)
    key.chmod(0o400)
    assert private_key(key)
    for mode in (0o640, 0o604, 0o620):
        key.chmod(mode)
        with refused(InvalidArgument, "chmod 600", name="signing_key"):
            private_key(key)
    key.chmod(0o600)
    (tmp_path / "link.pem").symlink_to(key)
    with refused(InvalidArgument, "no link", name="signing_key"):
        private_key(tmp_path / "link.pem")
    if os.geteuid() == 0:
        os.chown(key, 65534, 65534)
        with refused(InvalidArgument, "belong to the user", name="signing_key"):
            private_key(key)
    os.mkfifo(tmp_path / "pipe.pem", 0o600)
    with pytest.raises(InvalidArgument):
        private_key(tmp_path / "pipe.pem")


def test_an_encrypted_key_signs_with_the_passphrase_of_the_environment_or_of_whoever_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, hand_off = tmp_path / "locked.pem", tmp_path / "own"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame")))
    key.chmod(0o600)
    monkeypatch.delenv(signing.PASSPHRASE, raising=False)
    with refused(InvalidArgument, f"set {signing.PASSPHRASE}", name="signing_key"):
        signing.check_signing_key(key)
    monkeypatch.setenv(signing.PASSPHRASE, "guessed")
    with pytest.raises(InvalidArgument) as caught:
        signing.check_signing_key(key)
    assert "guessed" not in str(caught.value)
    monkeypatch.setenv(signing.PASSPHRASE, "open sesame")
    signing.check_signing_key(key)
    monkeypatch.delenv(signing.PASSPHRASE)
    asked = list[Path]()
    monkeypatch.setattr(signing, "ask", lambda path: asked.append(path) or "open sesame")
    signing.check_signing_key(key)
    shutil.copytree(APPROVED, hand_off)
    sign_manifest(hand_off, key, signing.passphrase_of(key))
    assert asked == [key] and verify_hand_off(hand_off).faults == []
