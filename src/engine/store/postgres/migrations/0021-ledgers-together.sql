-- What a dispatcher asks of the ledgers of many tenants, in one statement. Each function sets one tenant after the
-- other, so that row-level security shows the rows of that tenant alone, and then asks what `store/dispatch.ts` asks of
-- a single ledger. Call them in a transaction with one snapshot. The conditions are IS_DUE (a `run_at` more than 120 s
-- ahead counts as due) and IS_UNMARKED (a mark that ends more than 30 s ahead is not valid). A subquery of one value is
-- never answered by a hash of all rows, as EXISTS may be.

-- Steps with due jobs that no queue has, of interactive and of bulk adds; whether a lease ran out; whether a job at one
-- of the steps, or one that a worker has claimed, has not ended.
CREATE FUNCTION ledger_statuses(tenants integer[], steps text[], now_at bigint, lease_ms bigint)
  RETURNS TABLE (number integer, interactive text[], bulk text[], has_lapsed boolean, is_unfinished boolean)
  LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  has_queued boolean;
  has_leased boolean;
BEGIN
  FOREACH number IN ARRAY tenants LOOP
    PERFORM set_config('cairn.tenant', number::text, true);
    has_queued := (SELECT 1 FROM jobs
      WHERE tenant = number AND step = ANY (steps) AND state IN ('queued', 'failed') LIMIT 1) IS NOT NULL;
    has_leased := (SELECT 1 FROM jobs WHERE tenant = number AND state = 'active' LIMIT 1) IS NOT NULL;
    has_lapsed := has_leased AND (SELECT 1 FROM jobs
      WHERE tenant = number AND state = 'active' AND (lease_until <= now_at OR lease_until > now_at + 2 * lease_ms)
      LIMIT 1) IS NOT NULL;
    is_unfinished := has_queued OR has_leased;
    interactive := '{}';
    bulk := '{}';
    IF has_queued THEN
      SELECT coalesce(array_agg(s) FILTER (WHERE p = 0), '{}'), coalesce(array_agg(s) FILTER (WHERE p = 1), '{}')
        INTO interactive, bulk
        FROM unnest(steps) AS s CROSS JOIN unnest('{0,1}'::bigint[]) AS p
        WHERE (SELECT 1 FROM jobs
            WHERE tenant = number AND step = s AND suspect = 0 AND priority = p AND state IN ('queued', 'failed')
              AND run_at <= now_at AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
            LIMIT 1) IS NOT NULL
          OR (SELECT 1 FROM jobs
            WHERE tenant = number AND step = s AND suspect = 0 AND priority = p AND state IN ('queued', 'failed')
              AND run_at > now_at + 120000 AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
            LIMIT 1) IS NOT NULL
          OR (SELECT 1 FROM jobs
            WHERE tenant = number AND step = s AND suspect > 0 AND priority = p AND state IN ('queued', 'failed')
              AND (run_at <= now_at OR run_at > now_at + 120000)
              AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
            LIMIT 1) IS NOT NULL;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- How many due jobs of a step and a priority no queue has, `most` at most, which suspects count as, since a group of
-- them is handed out however small it is. `held_until` is the latest due time of jobs that are counted while documents
-- are read or wait for it; NULL if that holds none back.
CREATE FUNCTION ledger_batches(
    tenants integer[], of_step text, of_priority bigint, most bigint, held_until bigint, now_at bigint)
  RETURNS TABLE (number integer, due bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  latest bigint;
BEGIN
  FOREACH number IN ARRAY tenants LOOP
    PERFORM set_config('cairn.tenant', number::text, true);
    IF (SELECT 1 FROM jobs
      WHERE tenant = number AND step = of_step AND suspect > 0 AND priority = of_priority
        AND state IN ('queued', 'failed') AND (run_at <= now_at OR run_at > now_at + 120000)
        AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
      LIMIT 1) IS NOT NULL
    THEN
      due := most;
      RETURN NEXT;
      CONTINUE;
    END IF;
    latest := 9007199254740991;
    IF held_until IS NOT NULL AND (
      (SELECT 1 FROM jobs WHERE tenant = number AND kind = 'document' AND state = 'active' LIMIT 1) IS NOT NULL
      OR (SELECT 1 FROM jobs
        WHERE tenant = number AND step = 'ingest' AND suspect = 0 AND priority IN (0, 1)
          AND state IN ('queued', 'failed') AND run_at <= now_at
        LIMIT 1) IS NOT NULL
      OR (SELECT 1 FROM jobs
        WHERE tenant = number AND step = 'ingest' AND suspect = 0 AND priority IN (0, 1)
          AND state IN ('queued', 'failed') AND run_at > now_at + 120000
        LIMIT 1) IS NOT NULL
      OR (SELECT 1 FROM jobs
        WHERE tenant = number AND step = 'ingest' AND suspect > 0
          AND state IN ('queued', 'failed') AND (run_at <= now_at OR run_at > now_at + 120000)
        LIMIT 1) IS NOT NULL)
    THEN
      latest := held_until;
    END IF;
    SELECT count(*) INTO due FROM (
      (SELECT 1 FROM jobs
        WHERE tenant = number AND step = of_step AND suspect = 0 AND priority = of_priority
          AND state IN ('queued', 'failed') AND run_at <= least(now_at, latest)
          AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
        LIMIT most)
      UNION ALL
      (SELECT 1 FROM jobs
        WHERE tenant = number AND step = of_step AND suspect = 0 AND priority = of_priority
          AND state IN ('queued', 'failed') AND run_at > now_at + 120000 AND run_at <= latest
          AND (dispatched_until <= now_at OR dispatched_until > now_at + 30000)
        LIMIT most)
      LIMIT most) AS counted;
    RETURN NEXT;
  END LOOP;
END $$;

-- Whether a waiting job has a mark, even one that has ended.
CREATE FUNCTION ledger_marks(tenants integer[])
  RETURNS TABLE (number integer, has_marks boolean) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  FOREACH number IN ARRAY tenants LOOP
    PERFORM set_config('cairn.tenant', number::text, true);
    has_marks := (SELECT 1 FROM jobs
      WHERE tenant = number AND state IN ('queued', 'failed') AND dispatched_until > 0 LIMIT 1) IS NOT NULL;
    RETURN NEXT;
  END LOOP;
END $$;
