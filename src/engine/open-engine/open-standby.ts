import type { Config } from '../config.ts';
import { databaseNameOf } from '../control/place-of.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { createStandbyState, type StandbyState } from '../readers/standby-state.ts';
import { openBlockingConnection, postgresError, type Timeouts } from '../store/postgres/blocking-connection.ts';
import { readIdentity, requireRelated, type ServerIdentity } from '../store/postgres/server-identity.ts';

/** Timeouts of the connections that are made at the start to compare the two servers. */
const TIMEOUTS: Timeouts = { connectMs: 5_000, statementMs: 10_000 };

/** The standby of an engine. */
export interface OpenedStandby {
  readonly state: StandbyState;
  /** Identity of the server of OM_DATABASE_URL. */
  readonly primary: ServerIdentity;
}

/**
 * Compares the server of OM_DATABASE_READ_URL with that of OM_DATABASE_URL, and makes the state of the standby. A
 * standby that does not answer is tried again later.
 * @returns null without OM_DATABASE_READ_URL
 * @throws StandbyIsRefused if it is no standby of that server, nor that server itself; EngineError `unavailable` if
 *   OM_DATABASE_URL does not answer
 */
export function openStandby({
  config,
  metrics,
  logger,
}: {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly logger: Logger;
}): OpenedStandby | null {
  const { OM_DATABASE_URL: primaryUrl, OM_DATABASE_READ_URL: standbyUrl } = config;
  if (primaryUrl === undefined || standbyUrl === undefined) return null;
  const primary = identityOf(primaryUrl);
  const state = createStandbyState({
    ...{ metrics, logger, problem: findProblem(standbyUrl, primary) },
    hasTenant: (path) => databaseNameOf(config, path) === null,
  });
  return { primary, state };
}

/**
 * Returns why a standby does not answer at present, as the code of PostgreSQL or of the connection; null if it answers.
 * @throws StandbyIsRefused as `openStandby`
 */
function findProblem(url: string, primary: ServerIdentity): string | null {
  let standby: ServerIdentity;
  try {
    standby = identityOf(url);
  } catch (error) {
    const cause = postgresError(error);
    if (cause === undefined) throw error;
    return cause.code;
  }
  requireRelated(standby, primary);
  return null;
}

function identityOf(url: string): ServerIdentity {
  const connection = openBlockingConnection(url);
  connection.setTimeouts(TIMEOUTS);
  try {
    return readIdentity(connection);
  } finally {
    connection.close();
  }
}
