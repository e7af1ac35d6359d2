"""What is measured, in the order of the table."""
import micro_workloads
import net_workloads
import service_workloads


def all_cases(quick, growth=False):
    return [*micro_workloads.cases(quick, growth), *service_workloads.cases(quick), *net_workloads.cases(quick)]


def out_of_reach(quick):
    """What is left out because the machine does not allow it, in words."""
    return list(net_workloads.out_of_reach(quick))
