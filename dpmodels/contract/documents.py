"""The contract of a set of documents: which columns there are, whose presence is hidden, and the public encoder."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from dpmodels.contract.base import UndiscoveredContract
from dpmodels.frozen import Strict
from dpmodels.limits import LONGEST_NAME
from dpmodels.privacy import Adjacency, PrivacyUnit


class Encoder(Strict):
    """The public function that embeds a sentence.

    Attributes:
        name: of an encoder that nacre knows; or the path of a model of the operator's; or ``given`` where the documents
            come with embeddings of their own.
        dim: of an embedding.
        sha256: hash of the encoder's weights, which is compared before they are used; empty where there are none.
    """

    name: str
    dim: Annotated[int, Field(ge=1, le=8192)]
    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""


class Documents(UndiscoveredContract):
    """The public contract of one set of documents; everything in it is public by declaration.

    Attributes:
        id: column that identifies a document, which is public and is handed over.
        text: column of the text; or empty where ``embedding`` names a column with a list of numbers for each document,
            or with a list of such lists, one for each sentence.
        user: column of the user who wrote a document, of whom at most ``most_documents`` documents are used.
        label: column of a class, which is one of ``classes``; a value beside them counts as the last.
        protects: the unit of privacy. A sentence is hidden by replacing it (the number of sentences of a document is
            public then), a document or a user by adding or removing it.
        language: of the text, as a code of ISO 639; decides how it is cut into sentences.
        most_sentences: of a document; those after them are left out.
    """

    model_config = ConfigDict(strict=True)
    written: ClassVar[str] = "documents"
    about: ClassVar[Literal["documents"]] = "documents"
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=LONGEST_NAME)]
    protects: Literal["sentence", "document", "user"] = "document"
    id: str = "id"
    text: str = ""
    embedding: str = ""
    user: str = ""
    most_documents: Annotated[int, Field(ge=1)] = 1
    label: str = ""
    classes: Annotated[tuple[str, ...], Field(strict=False)] = ()
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")] = "en"
    most_sentences: Annotated[int, Field(ge=2, le=10_000)] = 200
    encoder: Encoder

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.text) == bool(self.embedding):
            raise ValueError("give one of `text` and `embedding`, which name a column")
        if (self.encoder.name == "given") != bool(self.embedding):
            raise ValueError("the encoder is `given` where the documents come with embeddings, and only there")
        if bool(self.label) != bool(self.classes) or len(set(self.classes)) < len(self.classes):
            raise ValueError("`label` and `classes` come together, and no class is named twice")
        if self.protects == "user" and not self.user:
            raise ValueError("to protect users, name the column of the `user`")
        if self.most_documents > 1 and not self.user:
            raise ValueError("`most_documents` needs the column of the `user`")
        names = [name for name in (self.id, self.text, self.embedding, self.user, self.label) if name]
        if len(set(names)) < len(names):
            raise ValueError("two of the columns have one name; name each column once")
        return self

    @property
    def kind(self) -> Literal["documents", "each document"]:
        """The kind of data: each document by itself where sentences are protected, or all of them together."""
        return "each document" if self.protects == "sentence" else "documents"

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence is hidden."""
        if self.protects == "user":
            return PrivacyUnit(kind="user", user=self.user, max_rows=self.most_documents)
        return PrivacyUnit(kind=self.protects)

    @property
    def adjacency(self) -> Adjacency:
        """How two neighboring sets of documents differ."""
        return Adjacency.REPLACE_ONE if self.protects == "sentence" else Adjacency.ADD_OR_REMOVE_ONE

    @property
    def part(self) -> str:
        """The kind of part that is charged on its own: where sentences are protected, a document or a user."""
        return "" if self.protects != "sentence" else "user" if self.user else "document"
