"""What is measured, in the order of the table."""
import micro_workloads
import net_workloads


def all_cases(quick):
    return [*micro_workloads.cases(quick), *net_workloads.cases(quick)]
