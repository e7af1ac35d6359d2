"""What a case is: one row of the table, measured for every contender that takes part, in turns."""
from dataclasses import dataclass, field


@dataclass
class Figure:
    """A number out of a program's JSON line. The first figure of a case is its main one; `params` tells the others apart."""
    key: str
    unit: str
    better: str = "lower"
    params: dict = field(default_factory=dict)


class Case:
    """A workload at a number of workers with some parameters (which go into the results). `kind` is the kind of program that it
    starts; measure() starts it and returns the JSON object with the figures' keys."""
    kind = "micro"
    beside_single_threads = False  # whether contenders that have one thread take part where workers > 1

    def __init__(self, workload, workers, params, figures):
        self.workload, self.workers, self.params, self.figures = workload, workers, params, figures

    def title(self):
        return f"{self.workload}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def takes(self, contender):
        if self.workload not in contender.workloads or self.kind not in contender.programs:
            return False
        return self.workers == 1 or not contender.single_thread or self.beside_single_threads

    def workers_of(self, contender):
        return 1 if contender.single_thread else self.workers

    def prepare(self, contenders):
        """Called once, before the first round, with those who take part."""

    def measure(self, contender):
        raise NotImplementedError
