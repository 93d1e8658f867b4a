"""Judge a synthetic table as the P3GM protocol does: TSTR by four classifiers' scores, and total variation distances.

Total variation is taken on columns cut into 20 quantile cells of the real training data (numbers) or on their values.
"""

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

QUANTILES = 20
MOST_PAIRS = 2000
"""Pairs of columns compared; of a wider table a fixed random sample."""
TEN_CLASSIFIERS = [
    LogisticRegression(max_iter=1000),
    GaussianNB(),
    BernoulliNB(),
    LinearSVC(),
    DecisionTreeClassifier(random_state=0),
    LinearDiscriminantAnalysis(),
    AdaBoostClassifier(random_state=0),
    BaggingClassifier(random_state=0),
    GradientBoostingClassifier(random_state=0),
    MLPClassifier(random_state=0),
]


@dataclass(frozen=True)
class Verdict:
    """Means over the four classifiers, and mean total variation distances."""

    auroc: float
    auprc: float
    tvd_1_way: float = 0.0
    tvd_2_way: float = 0.0


class TableJudge:
    """Compare synthetic tables with one real train and test split."""

    def __init__(self, train: pd.DataFrame, test: pd.DataFrame, target: str, positive: object) -> None:
        self.columns, self.given = list(train.columns), train
        self.numeric = [c for c in self.columns if pd.api.types.is_numeric_dtype(train[c]) and c != target]
        self.target, self.positive = target, str(positive)
        self.train, self.test = self._plain(train), self._plain(test)
        both = pd.concat([self.train, self.test])
        self.values = {c: sorted(set(both[c])) for c in self.columns if c not in self.numeric}
        self._real_codes = self._codes(self.train)

    def real(self) -> Verdict:
        """Judge the real training rows: the ceiling."""
        return self._utility(self.train)

    def judge(self, synthetic: pd.DataFrame) -> Verdict:
        """Judge synthetic rows."""
        made = self._plain(synthetic[self.columns])
        codes = self._codes(made)
        one = [self._distance((c,), codes) for c in self.columns]
        pairs = list(itertools.combinations(self.columns, 2))
        if len(pairs) > MOST_PAIRS:
            pairs = random.Random(0).sample(pairs, MOST_PAIRS)
        two = [self._distance(pair, codes) for pair in pairs]
        utility = self._utility(made)
        return Verdict(utility.auroc, utility.auprc, float(np.mean(one)), float(np.mean(two)))

    def _plain(self, table: pd.DataFrame) -> pd.DataFrame:
        numbers = {c: pd.to_numeric(table[c], errors="coerce").astype(float) for c in self.numeric}
        words = {
            c: table[c].astype(object).where(table[c].notna(), "?").astype(str)
            for c in self.columns
            if c not in self.numeric
        }
        return pd.DataFrame({c: (numbers | words)[c] for c in self.columns})

    def by_classifier(self, synthetic: pd.DataFrame) -> dict[str, Verdict]:
        """Judge synthetic rows by each of the four classifiers, without distances."""
        return self._scores(self._plain(synthetic[self.columns]), self._models())

    def _models(self) -> dict[str, Any]:
        return {
            "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
            "AdaBoost": AdaBoostClassifier(random_state=0),
            "GBM": GradientBoostingClassifier(random_state=0),
            "XGBoost": XGBClassifier(n_jobs=1, random_state=0),
        }

    def _utility(self, source: pd.DataFrame) -> Verdict:
        scores = self._scores(source, self._models()).values()
        auroc, auprc = np.mean([(one.auroc, one.auprc) for one in scores], axis=0)
        return Verdict(float(auroc), float(auprc))

    def _scores(self, source: pd.DataFrame, models: Mapping[str, Any]) -> dict[str, Verdict]:
        x, y = self._features(source), self._labels(source)
        x_test, y_test = self._features(self.test), self._labels(self.test)
        if len(np.unique(y)) < 2:
            return dict.fromkeys(models, Verdict(0.5, float(y_test.mean())))
        scores = dict[str, Verdict]()
        for name, model in models.items():
            p = model.fit(x, y).predict_proba(x_test)[:, 1]
            scores[name] = Verdict(float(roc_auc_score(y_test, p)), float(average_precision_score(y_test, p)))
        return scores

    def _labels(self, table: pd.DataFrame) -> np.ndarray:
        return (table[self.target] == self.positive).to_numpy().astype(int)

    def _features(self, table: pd.DataFrame) -> np.ndarray:
        parts = [
            table[[c]].fillna(-1).to_numpy()
            if c in self.numeric
            else (table[c].to_numpy()[:, None] == np.array(self.values[c], dtype=object)[None]).astype(float)
            for c in self.columns
            if c != self.target
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _codes(self, table: pd.DataFrame) -> dict[str, tuple[np.ndarray, int]]:
        codes = {}
        for c in self.columns:
            if c in self.numeric:
                edges = np.unique(np.quantile(self.train[c].dropna(), np.linspace(0, 1, QUANTILES + 1)))
                cells = np.searchsorted(edges[1:-1], table[c].fillna(edges[0]), side="right")
                codes[c] = cells, len(edges) + 1
            else:
                place = {value: i for i, value in enumerate(self.values[c])}
                codes[c] = table[c].map(place).fillna(len(place)).to_numpy().astype(int), len(place) + 1
        return codes

    def _distance(self, columns: tuple[str, ...], codes: dict[str, tuple[np.ndarray, int]]) -> float:
        shares = []
        for source in (self._real_codes, codes):
            cells, size = np.zeros(len(source[columns[0]][0]), dtype=int), 1
            for c in columns:
                cells, size = cells * source[c][1] + source[c][0], size * source[c][1]
            shares.append(np.bincount(cells, minlength=size) / len(cells))
        return float(np.abs(shares[0] - shares[1]).sum() / 2)


def hard_label_scores(train: pd.DataFrame, test: pd.DataFrame, target: str) -> list[tuple[float, float]]:
    """Return ROC and PRC of the *predicted labels* of each of ten classifiers, as PEARL and DP-MERF print them.

    Never to be put beside scores of probabilities. Features are scaled to [0, 1]: the papers do not say how they were
    scaled, and of raw, standardised and [0, 1] this comes closest to the values they print for real data.
    """
    x, x_test = (table.drop(columns=target).to_numpy(dtype=float) for table in (train, test))
    y, y_test = (table[target].to_numpy().astype(int) for table in (train, test))
    if len(np.unique(y)) < 2:
        return [(0.5, float(y_test.mean()))] * len(TEN_CLASSIFIERS)
    scores = []
    for classifier in TEN_CLASSIFIERS:  # at the papers' settings the network stops before it has converged
        predicted = make_pipeline(MinMaxScaler(), clone(classifier)).fit(x, y).predict(x_test)
        scores.append((float(roc_auc_score(y_test, predicted)), float(average_precision_score(y_test, predicted))))
    return scores
