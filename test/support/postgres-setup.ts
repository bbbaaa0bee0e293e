import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Port of the PostgreSQL server on which all tests of the run store their data. */
    postgresPort: number;
  }
}

/** Starts a PostgreSQL server for a test run that stores everything there. */
export default async function setup(project: TestProject): Promise<() => void> {
  const server = await startPostgres();
  if (server === undefined) throw new Error('there is no PostgreSQL: install Debian’s package postgresql');
  project.provide('postgresPort', Number(new URL(server.url).port));
  return () => server.stop();
}
