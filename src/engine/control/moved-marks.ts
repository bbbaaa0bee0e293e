/** The marks that `cairn move` leaves in the control database of the source. Marked data counts as closed there. */

import type { ControlFile } from './control-file.ts';

/**
 * Key of the mark in `store_info` for all tenants. The mark of a single tenant has this key, a colon and the tenant's
 * id.
 */
const MARK = 'moved_to';
/** SQL condition on `store_info` that excludes the marks. */
export const NO_MARK = `key <> '${MARK}' AND substr(key, 1, ${MARK.length + 1}) <> '${MARK}:'`;

/** Mark of data that was moved: its target and its time. */
export interface MoveMark {
  /** Name of the target, for messages: the path of a file, or the address of a database without its password. */
  readonly to: string;
  /** Time of the move, Unix ms. */
  readonly at: number;
}

const nameOf = (tenant: string | null): string => (tenant === null ? MARK : `${MARK}:${tenant}`);

/**
 * Finds the mark of a tenant that was moved alone, or with null the mark of a move of all tenants; undefined if there
 * is none.
 */
export function findMark(file: Pick<ControlFile, 'prepare'>, tenant: string | null): MoveMark | undefined {
  const find = file.prepare<[string], { value: string }>('SELECT value FROM store_info WHERE key = ?');
  const found = find.get(nameOf(tenant));
  return found && (JSON.parse(found.value) as MoveMark);
}

/** Marks a tenant as moved, or with null all tenants, and raises the generation counter. Call it inside a write. */
export function putMark(file: ControlFile, tenant: string | null, mark: MoveMark): void {
  file
    .prepare('INSERT INTO store_info (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
    .run(nameOf(tenant), JSON.stringify(mark));
  file.statements.bumpGeneration.run();
}

/** Removes the mark of a tenant, if there is one, so that the tenant is open here again. Call it inside a write. */
export function deleteMark(file: Pick<ControlFile, 'prepare'>, tenant: string): void {
  file.prepare('DELETE FROM store_info WHERE key = ?').run(nameOf(tenant));
}

/**
 * Returns a sentence that says where data was moved to.
 * @param what the subject of the sentence, such as `this tenant`
 */
export function describeMark({ to, at }: MoveMark, what: string): string {
  const day = new Date(at).toISOString().slice(0, 10);
  return `${what} was moved to ${to} on ${day} and is closed here: use it there, or move it back`;
}
