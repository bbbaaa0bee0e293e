/** The marks that `cairn move` leaves where the data was, which then counts as closed. */

import type { ControlFile } from './control-file.ts';

/** Beginning of the names of marks in `store_info`: alone for all tenants, else with a colon and a tenant's id. */
const MARK = 'moved_to';
/** Condition on `store_info` that leaves the marks out. */
export const NO_MARK = `key <> '${MARK}' AND substr(key, 1, ${MARK.length + 1}) <> '${MARK}:'`;

/** Where data was moved to. */
export interface MoveMark {
  /** The place, as it is told to people: the path of a file, or the address of a database without its password. */
  readonly to: string;
  /** Time of the move, Unix ms. */
  readonly at: number;
}

const nameOf = (tenant: string | null): string => (tenant === null ? MARK : `${MARK}:${tenant}`);

/** Finds the mark of a tenant that was moved alone, or for null that of all. */
export function findMark(file: Pick<ControlFile, 'prepare'>, tenant: string | null): MoveMark | undefined {
  const find = file.prepare<[string], { value: string }>('SELECT value FROM store_info WHERE key = ?');
  const found = find.get(nameOf(tenant));
  return found && (JSON.parse(found.value) as MoveMark);
}

/** Marks a tenant, or for null all, as moved. Call inside a write. */
export function putMark(file: ControlFile, tenant: string | null, mark: MoveMark): void {
  file
    .prepare('INSERT INTO store_info (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
    .run(nameOf(tenant), JSON.stringify(mark));
  file.statements.bumpGeneration.run();
}

/** Says in a sentence where something was moved to. @param what such as `this tenant` */
export function describeMark({ to, at }: MoveMark, what: string): string {
  const day = new Date(at).toISOString().slice(0, 10);
  return `${what} was moved to ${to} on ${day} and is closed here: use it there, or move it back`;
}
