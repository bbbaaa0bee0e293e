/** `cairn move`, killed at any moment: it ends when it is run again, and never are both places open. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import { dumpAll, fullFolder, spawnMove } from '../support/moved-folder.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('cairn move that is killed', () => {
  afterAll(() => server?.stop());

  test(
    'broken off by kill -9 at any moment, it ends when it is run again, and never are both places open',
    { timeout: 900_000 },
    async () => {
      const { file } = await fullFolder();
      const database = await server.createSchema();
      const before = dumpAll(file);
      const back = path.join(tempFolder(), 'cairn.sqlite');
      await moveWithKills(['--to', database], { OM_DB_PATH: file }, { file, database, end: 'database' });
      await moveWithKills(['--to', back], { OM_DATABASE_URL: database }, { file: back, database, end: 'folder' });
      expect(dumpAll(back)).toEqual(before);
    },
  );
});

/** Kills the command later and later, until it ends before it is killed. */
async function moveWithKills(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  { file, database, end }: { readonly file: string; readonly database: string; readonly end: 'database' | 'folder' },
): Promise<void> {
  let kills = 0;
  // Each delay is longer by a part of itself, so that a slow machine takes as many runs as a quick one.
  for (let delay = 900; ; delay *= 1.4 + 0.6 * Math.random()) {
    const moving = spawnMove(args, settings);
    const outcome = await Promise.race([moving.ended, pause(delay)]);
    if (outcome === undefined) {
      moving.kill();
      kills += Number((await moving.ended).signal === 'SIGKILL');
      // The server may take longer to notice than the next command waits for others to leave.
      await expect.poll(() => sessionsOf(database)).toEqual([]);
    }
    const open = await openPlaces({ file, database });
    expect(open.length, `both are open after ${kills} kills`).toBeLessThanOrEqual(1);
    if (outcome !== undefined && outcome.code !== 0) throw new Error(outcome.error);
    // The kill may have come behind its last step.
    if (outcome === undefined && open[0] !== end) continue;
    expect(open).toEqual([end]);
    break;
  }
  expect(kills).toBeGreaterThan(0);
}

/** Sessions of whoever uses a database, other than of the server's superuser. */
function sessionsOf(database: string): Promise<unknown[]> {
  return server.read(database, `SELECT pid FROM pg_stat_activity WHERE usename = '${new URL(database).username}'`);
}

/** Which of the two places a service may start on. */
async function openPlaces({ file, database }: { file: string; database: string }): Promise<string[]> {
  const isOpen = (settings: Record<string, string>) => {
    try {
      const control = openControlDatabase(readConfig(settings), systemClock);
      const tenants = control.listTenants().map(({ id }) => id);
      control.close();
      return tenants.includes('acme');
    } catch (error) {
      expect((error as Error).message).toMatch(/was moved to|is not complete|cairn move. uses the database/);
      return false;
    }
  };
  // A look must make no files where there are none.
  const hasFolder = fs.existsSync(file.replace('.sqlite', '.control.sqlite'));
  const rows = (await server.read(database, `SELECT to_regclass('store_info') IS NOT NULL AS made`)) as {
    made: boolean;
  }[];
  return [
    ...(hasFolder && isOpen({ OM_DB_PATH: file }) ? ['folder'] : []),
    ...(rows[0]!.made && (await hasTenant(database)) ? ['database'] : []),
  ];
}

/** Whether the control schema has the tenant and no mark; read without a service, which would make the default one. */
async function hasTenant(database: string): Promise<boolean> {
  const schema = `${new URL(database).username}_control`;
  const made = (await server.read(database, `SELECT to_regclass('${schema}.store_info') IS NOT NULL AS made`)) as {
    made: boolean;
  }[];
  if (!made[0]!.made) return false;
  const found = await server.read(
    database,
    `SELECT 1 FROM ${schema}.tenants WHERE id = 'acme'
       AND NOT EXISTS (SELECT 1 FROM ${schema}.store_info WHERE key = 'moved_to')`,
  );
  return found.length > 0;
}
