/**
 * How many kills or adds a long fault test has: all, or a tenth in the short form that CI runs beside `check`
 * (`CAIRN_FAULTS=short`).
 */
export function inForm(count: number): number {
  return process.env.CAIRN_FAULTS === 'short' ? Math.ceil(count / 10) : count;
}
