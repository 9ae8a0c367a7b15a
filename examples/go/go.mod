module example.com/ledger

go 1.19

require example.com/steadfast/helpers/go v0.1.0

replace example.com/steadfast/helpers/go => ../../helpers/go
