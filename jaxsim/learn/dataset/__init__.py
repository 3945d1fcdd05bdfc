"""Datasets of episodes for offline learning, in Parquet files: `Dataset` reads, `jaxsim collect`
writes.

Reading needs the extra `dataset` alone: no learner is imported.
"""

from jaxsim.learn.dataset.reader import Dataset as Dataset
from jaxsim.learn.dataset.reader import Episode as Episode
from jaxsim.learn.dataset.writer import DatasetWriter as DatasetWriter
