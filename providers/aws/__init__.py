"""AWS EC2 capacity reservations through boto3. Import `providers.aws.adapter` only when AWS is used."""
