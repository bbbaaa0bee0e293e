/**
 * Returns the number of kills or adds that a long fault test makes: `count`, or a tenth of it with
 * `CAIRN_FAULTS=short`, which CI sets.
 */
export function inForm(count: number): number {
  return process.env.CAIRN_FAULTS === 'short' ? Math.ceil(count / 10) : count;
}
