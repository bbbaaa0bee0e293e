import { createHash } from 'node:crypto';
import type { Config } from '../config.ts';
import { addressOf, databaseNameOf, placeOf } from '../control/place-of.ts';
import { openUpkeepNotes, type DueTenant, type UpkeepNotes } from '../store/postgres/upkeep-notes.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { MaintenanceContext } from './maintenance-context.ts';
import { findNextLook } from './next-look.ts';
import { createLook, runDueSchedules, schedules } from './schedules.ts';

/**
 * Finds the tenants in PostgreSQL that need upkeep, with one statement for each database, so that a tenant to which
 * nothing happens is not opened. A tenant whose database cannot be asked counts as one that needs upkeep: opening it
 * tells why.
 */
export interface DueTenants {
  /** Begins a look for schedules that are due. The function tells whether a tenant, by its path, has any. */
  beginTick(now: number): (path: string) => boolean;
  /** Begins a look for leases and text to erase. The function tells whether a tenant, by its path, may have any. */
  beginSweep(): (path: string) => boolean;
  /**
   * Runs the due schedules of a tenant, and notes when the next look is due, unless the last tick did not find the
   * tenant, the work was aborted, or the next look is due at once. Throws what opening it throws, and errors of the
   * database at the note.
   */
  runSchedules(path: string, context: MaintenanceContext): Promise<void>;
  close(): void;
}

/**
 * Opens what finds due tenants; null without OM_DATABASE_URL, as files are looked at one by one.
 * @param identity vector spaces that the settings name
 */
export function openDueTenants(
  config: Config,
  identity: SpaceIdentity | readonly SpaceIdentity[] | null,
): DueTenants | null {
  if (config.OM_DATABASE_URL === undefined) return null;
  const settings = nameSettings(config, identity);
  const databases = new Map<string | null, UpkeepNotes>();
  /** What the last tick read of each tenant, by path. */
  const found = new Map<string, DueTenant>();
  const notesOf = (path: string): UpkeepNotes => {
    const name = databaseNameOf(config, path);
    let notes = databases.get(name);
    if (notes === undefined)
      databases.set(name, (notes = openUpkeepNotes({ database: addressOf(config, name)!, name }, settings)));
    return notes;
  };
  /** Returns a function that reads from the database of a path once for all its tenants; undefined if that fails. */
  const oncePerDatabase = <T>(read: (notes: UpkeepNotes) => T) => {
    const byDatabase = new Map<string | null, T | undefined>();
    return (path: string): T | undefined => {
      const name = databaseNameOf(config, path);
      if (!byDatabase.has(name))
        byDatabase.set(
          name,
          orUndefined(() => read(notesOf(path))),
        );
      return byDatabase.get(name);
    };
  };
  const idOf = (path: string) => placeOf(config, path)!.tenant;
  return {
    beginTick(now) {
      found.clear();
      const dueIn = oncePerDatabase((notes) => notes.listDue(now));
      return (path) => {
        const due = dueIn(path);
        const tenant = due?.get(idOf(path));
        if (tenant !== undefined) found.set(path, tenant);
        return due === undefined || tenant !== undefined;
      };
    },
    beginSweep() {
      const changedIn = oncePerDatabase((notes) => notes.listChanged());
      return (path) => changedIn(path)?.has(idOf(path)) ?? true;
    },
    async runSchedules(path, context) {
      const before = found.get(path);
      found.delete(path);
      const look = createLook(before?.rests == null ? {} : (JSON.parse(before.rests) as Record<string, number>));
      await runDueSchedules(context, look);
      if (before === undefined || context.signal?.aborted) return;
      const at = context.clock.now();
      const next = findNextLook(context, look, before.writes);
      if (next === null || next.dueAt <= at) return;
      const { tenant } = before;
      notesOf(path).put({ tenant, at, writes: next.writes, dueAt: next.dueAt, rests: JSON.stringify(next.rests) });
    },
    close() {
      for (const notes of databases.values()) notes.close();
    },
  };
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Returns a hash of the settings on which it depends when schedules are due and what they find to do. */
function nameSettings(config: Config, identity: SpaceIdentity | readonly SpaceIdentity[] | null): string {
  const { OM_EMBEDDINGS, OM_REEMBED, OM_VECTOR_PRECISION } = config;
  const periods = schedules(config).map(({ name, everyMs }) => [name, everyMs]);
  const settings = JSON.stringify([periods, identity, OM_EMBEDDINGS, OM_REEMBED ?? null, OM_VECTOR_PRECISION]);
  return createHash('sha256').update(settings).digest('base64url').slice(0, 22);
}
