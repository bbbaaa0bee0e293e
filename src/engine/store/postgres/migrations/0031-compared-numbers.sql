-- Numbers are compared as they are: the difference of 1e308 and -1e308 is no number, and ended the whole query.
CREATE OR REPLACE FUNCTION key_passes(value json, operator text, operand json) RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  kind text := json_typeof(value);
  own text := value #>> '{}';
  other text := operand #>> '{}';
  difference integer;
BEGIN
  CASE operator
    WHEN '$exists' THEN RETURN (value IS NOT NULL) = (operand::text = 'true');
    WHEN '$eq' THEN RETURN coalesce(value::text, 'null') = operand::text;
    WHEN '$ne' THEN RETURN coalesce(value::text, 'null') <> operand::text;
    WHEN '$in' THEN RETURN coalesce(value::text, 'null') IN (SELECT v::text FROM json_array_elements(operand) AS v);
    WHEN '$nin' THEN RETURN coalesce(value::text, 'null') NOT IN (SELECT v::text FROM json_array_elements(operand) AS v);
    ELSE
      IF kind IS NULL OR kind <> json_typeof(operand) OR kind NOT IN ('number', 'string') THEN RETURN false; END IF;
      IF kind = 'number' THEN
        difference := CASE WHEN own::float8 < other::float8 THEN -1 WHEN own::float8 = other::float8 THEN 0 ELSE 1 END;
      ELSE difference := CASE WHEN own COLLATE "C" < other THEN -1 WHEN own = other THEN 0 ELSE 1 END;
      END IF;
      RETURN CASE operator WHEN '$gt' THEN difference > 0 WHEN '$gte' THEN difference >= 0
        WHEN '$lt' THEN difference < 0 ELSE difference <= 0 END;
  END CASE;
END $$;
