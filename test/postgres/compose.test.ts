/** The two servers of docker-compose.yml, whose scripts are run here as the image runs them. */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { findPrograms, serverUser } from '../support/postgres.ts';
import { startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SCRIPTS = path.resolve(import.meta.dirname, '../../docker');
const PASSWORD = 'c0ffee';
const FOLLOWERS = `SELECT application_name, sync_state FROM pg_stat_replication WHERE state = 'streaming'`;

const programs = findPrograms();
describe.skipIf(programs === undefined)('PostgreSQL of docker-compose.yml', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    while (ends.length > 0) ends.pop()!();
  });

  test('keeps every write on a standby, which is copied once and takes over when it is promoted', async () => {
    const primary = await startPrimary();
    const standby = await startStandby(primary);
    await expect.poll(() => standby.followers()).toEqual([{ application_name: 'standby', sync_state: 'sync' }]);
    const service = await startNode(`postgres://cairn:${PASSWORD}@127.0.0.1:${primary.port}/cairn`);
    expect((await add(service, 'The ferry leaves at noon.')).status).toBe(202);

    await standby.stop();
    fs.writeFileSync(path.join(standby.data, 'mark'), '');
    standby.start();
    // The write waits for it, but not for as long as a start may take.
    await expect.poll(() => standby.followers()).toEqual([{ application_name: 'standby', sync_state: 'sync' }]);
    expect((await add(service, 'The harbour has nine berths.')).status).toBe(202);
    expect(fs.existsSync(path.join(standby.data, 'mark'))).toBe(true);
    await service.end('SIGKILL');

    primary.stop();
    standby.promote();
    const after = await startNode(`postgres://cairn:${PASSWORD}@127.0.0.1:${standby.port}/cairn`);
    expect((await add(after, 'Berth four is closed.')).status).toBe(202);
    const { body } = await after.request('GET', '/memory/all');
    expect(body.items).toHaveLength(3);
    await after.end('SIGTERM');
  });

  test('lets in over the network only the role of Cairn, with its password, and the standby', async () => {
    const primary = await startPrimary();
    const login = async (user: string, password: string) => {
      const client = new pg.Client({ host: '127.0.0.1', port: primary.port, user, password, database: 'cairn' });
      await client.connect();
      const { rows } = await client.query<object>('SELECT rolsuper FROM pg_roles WHERE rolname = current_user');
      await client.end();
      return rows;
    };
    await expect(login('cairn', PASSWORD)).resolves.toEqual([{ rolsuper: false }]);
    await expect(login('cairn', 'wrong')).rejects.toThrow('password authentication failed');
    for (const user of ['postgres', 'standby'])
      await expect(login(user, PASSWORD)).rejects.toThrow('no pg_hba.conf entry');
  });

  /** Initialises a server as the image does: with its script, while it listens on a local socket only. */
  async function startPrimary() {
    const folder = serverFolder();
    const port = await freePort();
    const data = path.join(folder, 'data');
    const run = (program: string, options: readonly string[], environment: NodeJS.ProcessEnv = {}) =>
      void execFileSync(program, options, {
        ...serverUser(),
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
        env: {
          PATH: `${programs}:${process.env.PATH}`,
          PGDATA: data,
          PGHOST: folder,
          PGPORT: `${port}`,
          ...environment,
        },
      });
    const start = (listen: string) =>
      run('pg_ctl', ['-w', '-o', `-k ${folder} -c listen_addresses=${listen}`, '-l', `${folder}/log`, 'start']);
    const stop = (mode: string) => run('pg_ctl', ['-m', mode, '-w', 'stop']);
    run('initdb', ['-U', 'postgres', '-A', 'trust', '--no-sync']);
    start("''");
    const environment = { POSTGRES_USER: 'postgres', POSTGRES_PASSWORD: PASSWORD };
    run(path.join(SCRIPTS, 'postgres-primary.sh'), [], environment);
    stop('fast');
    start('127.0.0.1');
    let isRunning = true;
    const stopOnce = () => {
      if (isRunning) stop('immediate');
      isRunning = false;
    };
    ends.push(stopOnce);
    const followers = () => asSuperuser(folder, port, FOLLOWERS);
    return { folder, port, stop: stopOnce, followers };
  }

  /** Starts the standby over what a copy that was broken off has left behind. */
  async function startStandby(primary: { folder: string; port: number; followers: () => Promise<unknown> }) {
    const folder = serverFolder();
    const port = await freePort();
    const data = path.join(folder, 'standby');
    const owner = serverUser();
    execFileSync('mkdir', [`${data}.copy`, `${data}.copy/base`], owner);
    const env = {
      PATH: `${programs}:${process.env.PATH}`,
      PGDATA: data,
      PGHOST: '127.0.0.1',
      PGPORT: `${primary.port}`,
      PGUSER: 'standby',
      PGPASSWORD: PASSWORD,
    };
    const options = ['-p', `${port}`, '-k', folder, '-h', '127.0.0.1'];
    const spawnServer = () =>
      spawn(path.join(SCRIPTS, 'postgres-standby.sh'), options, { ...owner, cwd: folder, env, stdio: 'ignore' });
    let server = spawnServer();
    const stop = async () => {
      if (server.exitCode !== null || server.signalCode !== null) return;
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGQUIT');
      await ended;
    };
    ends.push(() => void server.kill('SIGQUIT'));
    return {
      data,
      port,
      stop,
      start: () => void (server = spawnServer()),
      promote: () => void execFileSync('pg_ctl', ['-w', 'promote'], { ...owner, env, cwd: folder, stdio: 'ignore' }),
      followers: primary.followers,
    };
  }
});

/** Makes an empty folder that belongs to the server's user. */
function serverFolder(): string {
  const folder = tempFolder();
  const { uid, gid } = serverUser();
  fs.chownSync(folder, uid, gid);
  return folder;
}

async function asSuperuser(host: string, port: number, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres' });
  await client.connect();
  const { rows } = await client.query<object>(sql);
  await client.end();
  return rows;
}

async function startNode(database: string): Promise<ServiceProcess> {
  const settings = { OM_DATABASE_URL: database, OM_QUERY_THREADS: '1' };
  const node = await startServiceProcess({ folder: tempFolder(), settings, command: 'api' });
  onTestFinished(async () => void (await node.end('SIGKILL')));
  return node;
}

function add(node: ServiceProcess, content: string) {
  return node.request('POST', '/memory/add', { body: { content } });
}
