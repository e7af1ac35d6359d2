module noria-bench-go

go 1.26
