import { DAY_MS } from '../dynamics.ts';

/**
 * Value and rate of decay below which nothing is computed, since PostgreSQL raises an error where SQLite rounds a
 * product to 0. Times the least power that `exp` returns there (5e-131), this is still a number.
 */
const LEAST = '1.0e-100';

/** SQL for the salience of a memory at a time (its parameter, Unix ms), by its row `d` of `memory_dynamics`. */
export const SALIENCE_AT = fadedSql('d.salience', 'd.salience_at', 'd.decay_lambda', '?');

/**
 * Returns SQL that computes a decayed value like the function `decayed`, not cut to 0..1, for statements over many
 * rows. A value below 1e-100 counts as 0, and so does a rate.
 * @param value SQL expression for the value at the time `at` (Unix ms), 0..1
 * @param lambda decay rate per day, as a number or SQL
 * @param now parameter of the time to compute the value for (Unix ms)
 */
export function fadedSql(value: string, at: string, lambda: string | number, now: string): string {
  const faded = `${value} * exp(-${lambda} * max(0, ${now} - ${at}) / ${DAY_MS}.0)`;
  return `(CASE WHEN ${value} < ${LEAST} THEN 0.0 WHEN ${lambda} < ${LEAST} THEN ${value} ELSE ${faded} END)`;
}
