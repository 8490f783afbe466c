def test_importing_laminae_state_loads_no_spark() -> None:
    program = "import sys, laminae.state, laminae.state.serializer; print('pyspark' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
