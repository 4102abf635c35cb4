print("retake")
