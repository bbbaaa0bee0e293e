/** Helpers for tests of `cairn tenants move`: two databases, the command as a process, and what a database holds. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { readConfig, type Config } from '../../src/engine/config.ts';
import { moveTenant, type TenantMoveOptions } from '../../src/engine/move/move-between-databases.ts';
import { move } from '../../src/engine/move/move-folder.ts';
import type { PostgresServer } from './postgres.ts';
import { tempFolder } from './temp-folder.ts';

/** Settings of a service with a database of its own and one further, `eu`. */
export interface TwoDatabases {
  readonly home: string;
  readonly eu: string;
  readonly settings: Readonly<Record<string, string>>;
}

export async function twoDatabases(server: PostgresServer): Promise<TwoDatabases> {
  const [home, eu] = [await server.createSchema(), await server.createSchema()];
  return { home, eu, settings: { OM_DATABASE_URL: home, OM_DATABASES: `eu=${eu}` } };
}

export function configOf(settings: Readonly<Record<string, string>>): Config {
  return readConfig({ OM_VEC_DIM: '256', OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), ...settings });
}

/** Moves a tenant in this process, and deletes its old rows after a moment. */
export function moveHere(
  settings: Readonly<Record<string, string>>,
  { tenant = 'acme', ...options }: Pick<TenantMoveOptions, 'to'> & Partial<TenantMoveOptions>,
) {
  const showProgress = () => ({ update() {}, stop() {} });
  return moveTenant({
    ...{ config: configOf(settings), tenant, now: Date.now(), graceMs: 300, showProgress },
    ...options,
  });
}

/** Moves all tenants of a database into a folder. */
export function moveOut(database: string) {
  const showProgress = () => ({ update() {}, stop() {} });
  return move({
    ...{ folder: configOf({}), database, direction: 'into folder', keepsSource: false },
    ...{ now: Date.now(), showProgress },
  });
}

/** Starts `cairn tenants …` as a process that can be killed. */
export function spawnTenants(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const main = path.resolve(import.meta.dirname, '../../src/cli/main.ts');
  const folder = tempFolder();
  const child = spawn(process.execPath, [main, 'tenants', ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      OM_VEC_DIM: '256',
      OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, error] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  child.stderr.on('data', (text: Buffer) => (error += text.toString()));
  const ended = once(child, 'close').then(([code, signal]) => ({
    ...{ code: code as number | null, signal: signal as NodeJS.Signals | null, output, error },
  }));
  return { ended, kill: () => child.kill('SIGKILL') };
}

/** Counts the memories of a tenant, and of copies of it that have other names, in a database. */
export async function memoriesIn(server: PostgresServer, database: string, tenant = 'acme'): Promise<number> {
  const made = (await server.read(database, `SELECT to_regclass('memories') IS NOT NULL AS made`)) as {
    made: boolean;
  }[];
  if (!made[0]!.made) return 0;
  const found = (await server.read(
    database,
    `SELECT count(*)::int AS memories FROM memories JOIN tenants USING (tenant)
     WHERE tenants.id = '${tenant}' OR tenants.id LIKE 'moving:%:${tenant}'`,
  )) as { memories: number }[];
  return found[0]!.memories;
}
