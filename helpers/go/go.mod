module example.com/steadfast/helpers/go

go 1.19
