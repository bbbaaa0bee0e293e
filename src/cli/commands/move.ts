import { move as moveTenants, type MoveReport } from '../../engine/for-admin.ts';
import { readConfig, type Config } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { startProgress } from '../progress.ts';
import { counted, print } from '../terminal.ts';

/** The options of `cairn move`. */
interface MoveCommand {
  /**
   * The target: the address of a database (`postgres://…`), or the path that the file of the default tenant gets in
   * another data folder, as in OM_DB_PATH.
   */
  readonly to: string;
  /** The only tenant that is moved; all tenants if left out. */
  readonly tenant?: string;
  /** Whether the source stays open for services, so that it can still be written to; false by default. */
  readonly keepSource?: boolean;
}

/**
 * Runs `cairn move`: moves all tenants, or one. The form of `to` tells the direction: to an address `postgres://…`, the
 * tenants of the data folder (OM_DB_PATH) are moved into that database; to a path, the tenants of the database of
 * OM_DATABASE_URL are moved into the data folder of that path. No service may use the folder or the database meanwhile.
 * @throws CliError with exit code 2 if OM_DATABASE_URL is set and `to` is an address, or if it is not set and `to` is a
 *   path
 */
export async function move({ to, tenant, keepSource = false }: MoveCommand): Promise<void> {
  const toDatabase = /^postgres(?:ql)?:\/\//.test(to);
  const { folder, database } = toDatabase ? intoDatabase(to) : intoFolder(to);
  const report = await moveTenants({
    ...{ folder, database, tenant, keepsSource: keepSource, now: Date.now(), showProgress: startProgress },
    direction: toDatabase ? 'into database' : 'into folder',
  });
  tell(report, keepSource);
  const setting = toDatabase
    ? 'set OM_DATABASE_URL to the database, and OM_DB_PATH to a path in another folder'
    : 'set OM_DB_PATH to the new path, and leave OM_DATABASE_URL out';
  print(tenant === undefined ? `before the next start: ${setting}` : `a service that is to have ${tenant}: ${setting}`);
}

function tell({ to, tenants, memories, questions, isResumed }: MoveReport, keepsSource: boolean): void {
  const what = counted(tenants.length, 'tenant');
  if (isResumed) print(`${what} moved to ${to}: an earlier run had copied and compared them`);
  else {
    print(`${what} with ${counted(memories, 'memory', 'memories')} moved to ${to}`);
    print(`every table is equal, and so are the answers to ${counted(questions, 'question')}`);
  }
  print(keepsSource ? 'the source is still open: do not let both be written to' : 'the source is closed');
}

/**
 * Returns the source and the target of a move into a database: the settings of the data folder, and the address of the
 * database.
 * @throws CliError if OM_DATABASE_URL is set; EngineError `invalid` for settings that PostgreSQL does not have
 */
function intoDatabase(database: string): { readonly folder: Config; readonly database: string } {
  const { OM_DATABASE_URL: present, ...environment } = process.env;
  if (present !== undefined && present.trim() !== '') {
    throw new CliError(
      'OM_DATABASE_URL is set, so the tenants are in a database already: leave it out to move the files of ' +
        'OM_DB_PATH, or move to files first',
      { exitCode: 2 },
    );
  }
  const folder = readConfig(environment);
  // A key of encryption has a sentence of its own.
  if (folder.masterKey === null) readConfig({ ...environment, OM_DATABASE_URL: database });
  return { folder, database };
}

/**
 * Returns the target and the source of a move out of a database: the settings of the data folder at `path`, and the
 * address of the database, from OM_DATABASE_URL.
 * @throws CliError if OM_DATABASE_URL is not set
 */
function intoFolder(path: string): { readonly folder: Config; readonly database: string } {
  const { OM_DATABASE_URL: database, ...environment } = process.env;
  if (database === undefined || database.trim() === '') {
    throw new CliError('expected --to postgres://…, or OM_DATABASE_URL with the database whose tenants are moved', {
      exitCode: 2,
    });
  }
  return { folder: readConfig({ ...environment, OM_DB_PATH: path }), database: database.trim() };
}
