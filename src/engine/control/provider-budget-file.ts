/**
 * The file in which all processes of a data folder count the calls of a provider. Its tables:
 *
 * - `slots`: calls and tokens of the last minute, in slots of 100 ms
 * - `breaker`: one row with failures in a row and the present pause
 * - `started`: one row with the time at which the last call started
 * - `flights`: calls that are running
 * - `told`: limits that the provider's replies stated
 */

import { openCounterFile } from './counter-file.ts';
import type { CounterFile, CounterPlace, Prepared } from './counters.ts';

/** The prepared statements of the file by name. They are valid only inside the `write` or `note` that passes them. */
export type BudgetStatements = Prepared<keyof typeof STATEMENTS>;

/**
 * Opens the file of a provider's budget, or the same tables in PostgreSQL, and makes it if it is absent.
 * @throws EngineError the errors of `openCounterFile`
 */
export function openBudgetFile(place: CounterPlace): CounterFile<keyof typeof STATEMENTS> {
  return openCounterFile(place, { schema: SCHEMA, statements: STATEMENTS });
}

const SCHEMA = `CREATE TABLE IF NOT EXISTS slots (
  slot INTEGER PRIMARY KEY, requests INTEGER NOT NULL, tokens INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS breaker (
  one INTEGER PRIMARY KEY CHECK (one = 1), failures INTEGER NOT NULL, opened_at INTEGER NOT NULL,
  open_ms INTEGER NOT NULL, probe_at INTEGER NOT NULL
) STRICT;
INSERT INTO breaker VALUES (1, 0, 0, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS started (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT;
INSERT INTO started VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS flights (
  flight INTEGER PRIMARY KEY AUTOINCREMENT, tokens INTEGER NOT NULL, at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS told (
  kind TEXT PRIMARY KEY, remaining INTEGER NOT NULL, reserve INTEGER NOT NULL, at INTEGER NOT NULL,
  reset_ms INTEGER NOT NULL
) STRICT;`;

const STATEMENTS = {
  breaker: 'SELECT failures, opened_at, open_ms, probe_at FROM breaker',
  setBreaker:
    'UPDATE breaker SET failures = :failures, opened_at = :opened_at, open_ms = :open_ms, probe_at = :probe_at',
  probe: 'UPDATE breaker SET probe_at = :now',
  rebaseBreaker: `UPDATE breaker SET opened_at = min(opened_at, :now), probe_at = min(probe_at, :now)
       WHERE opened_at > :now OR probe_at > :now`,
  started: 'SELECT at FROM started',
  rebaseStarted: 'UPDATE started SET at = :now WHERE at > :now',
  setStarted: 'UPDATE started SET at = :now',
  depart: 'INSERT INTO flights (tokens, at) VALUES (:tokens, :now)',
  land: 'DELETE FROM flights WHERE flight = :flight',
  forgetFlights: 'DELETE FROM flights WHERE at < :before OR at > :now',
  underWay: 'SELECT count(*) AS requests, coalesce(sum(tokens), 0) AS tokens FROM flights',
  told: 'SELECT kind, remaining, reserve, at + reset_ms AS reset_at FROM told WHERE at + reset_ms > :now',
  rebaseTold: 'UPDATE told SET at = :now WHERE at > :now',
  spend: 'UPDATE told SET remaining = remaining - :cost WHERE kind = :kind',
  setTold: `INSERT INTO told (kind, remaining, reserve, at, reset_ms)
       VALUES (:kind, :remaining, :reserve, :now, :resetMs) ON CONFLICT (kind) DO UPDATE
       SET remaining = excluded.remaining, reserve = excluded.reserve, at = excluded.at, reset_ms = excluded.reset_ms
       WHERE excluded.remaining < remaining OR at + reset_ms <= excluded.at`,
  rebaseSlots: `INSERT INTO slots (slot, requests, tokens)
       SELECT :slot, sum(requests), sum(tokens) FROM slots WHERE slot > :slot
       HAVING count(*) > 0
       ON CONFLICT (slot) DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens`,
  forgetSlots: 'DELETE FROM slots WHERE slot <= :last OR slot > :slot',
  totals: 'SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(tokens), 0) AS tokens FROM slots',
  slots: 'SELECT slot, requests, tokens FROM slots ORDER BY slot',
  count: `INSERT INTO slots (slot, requests, tokens) VALUES (:slot, 1, :tokens)
       ON CONFLICT (slot) DO UPDATE SET requests = requests + 1, tokens = tokens + excluded.tokens`,
} as const;
