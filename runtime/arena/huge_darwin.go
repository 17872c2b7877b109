package arena

func adviseHuge([]byte) {}
