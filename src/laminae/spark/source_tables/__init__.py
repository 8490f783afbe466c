"""What an upsert, retract or Debezium source keeps, and the changes that its records make. It knows no transport."""
