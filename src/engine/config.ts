import fs from 'node:fs';
import path from 'node:path';
import { crossChecks } from './config/checks.ts';
import { parseDatabases } from './config/databases.ts';
import { EMBEDDED_HERE, fallbacksOf, sectorModelsOf, type Fallback } from './config/embedding-models.ts';
import { foreignSettings } from './config/foreign-settings.ts';
import { readMasterKey } from './config/master-key.ts';
import { durationText, listOf } from './config/setting-kinds.ts';
import { parseNetworks, type Network } from './config/networks.ts';
import { settingsSchema, type Settings } from './config/settings.ts';
import { builtInMode, type EntityMode } from './entities/modes.ts';
import { parseEntityMode } from './entities/parse-mode.ts';
import { EngineError } from './errors.ts';
import type { NamedModel } from './named-model.ts';
import { parsePrices, type Prices } from './prices.ts';

export { HOME_DATABASE } from './config/databases.ts';
export { readKeyFile } from './config/master-key.ts';
export type { Network } from './config/networks.ts';
export { queueServerOf } from './config/queue-server.ts';
export { isLoopback, isTamperProofUrl } from './config/hosts.ts';
export { settingsSchema } from './config/settings.ts';

/** The settings, checked and frozen, with the values that follow from them. Names are those of the variables. */
export interface Config extends Readonly<Settings> {
  /** Names of the settings that the environment gives; the others have their defaults. */
  readonly given: readonly string[];
  /**
   * Absolute paths in the data folder: the files of the default tenant (`OM_DB_PATH`), of the control database, of the
   * instance lock, of the two provider budgets, of the rate limits, of wrong keys and of the address at which `cairn
   * mcp` serves the folder, and the folder of all other tenants' files (`tenants`).
   */
  readonly paths: {
    readonly defaultTenant: string;
    readonly control: string;
    readonly tenants: string;
    readonly lock: string;
    readonly budget: string;
    readonly llmBudget: string;
    readonly rates: string;
    readonly guesses: string;
    readonly address: string;
  };
  /** Addresses of the further databases of `OM_DATABASES`, by name; empty if it is not set. */
  readonly databases: Readonly<Record<string, string>>;
  /**
   * Whether no provider is called for vectors: true if `OM_EMBEDDINGS` is `synthetic` or `local`, which compute them on
   * this machine's cores, or `none`.
   */
  readonly embedsHere: boolean;
  /** Prices by model: those that `OM_PRICES` states, and the known list prices of other models. */
  readonly prices: Prices;
  /**
   * Model of each sector in the order of SECTORS; null with `OM_EMBED_MODE=simple`, where one model embeds every
   * sector.
   */
  readonly sectorModels: readonly NamedModel[] | null;
  /**
   * Servers of `OM_EMBED_FALLBACK`, in order, which are called with the same model when the configured embedding server
   * fails; empty if it is not set.
   */
  readonly fallbacks: readonly Fallback[];
  /** Addresses and networks of `OM_TRUSTED_PROXIES`; empty if it is not set. */
  readonly trustedProxies: readonly string[];
  /** Origins of `OM_CORS_ORIGINS`, such as `https://example.org`, or `*` for any; empty if it is not set. */
  readonly corsOrigins: readonly string[];
  /** The master key of the stored data, 32 bytes; null if no key is set, so that the data is stored unencrypted. */
  readonly masterKey: Uint8Array | null;
  /**
   * Networks of `OM_FETCH_DENY`. Pages are not fetched from them, nor from private networks and this machine. Webhooks
   * and queries to other servers are not sent there either, unless `webhookNetworks` or `federationNetworks` has the
   * address.
   */
  readonly deniedNetworks: readonly Network[];
  /**
   * Networks of `OM_WEBHOOK_ALLOW`. Webhooks are delivered to addresses in them, although these are not public or are
   * in `deniedNetworks`.
   */
  readonly webhookNetworks: readonly Network[];
  /**
   * Networks of `OM_FEDERATION_ALLOW`. Other servers at addresses in them are queried, although these are not public or
   * are in `deniedNetworks`.
   */
  readonly federationNetworks: readonly Network[];
  /** Types of entities and relations of the entity graph; null with `OM_ENTITY_MODE=none`, which builds no graph. */
  readonly entityMode: EntityMode | null;
}

/**
 * Reads and checks the settings, the file of `OM_ENTITY_MODE_FILE`, and the master key from its file or command.
 * Variables that are unset, empty or blank take their defaults.
 * @param environment names and values as in `process.env`; other names are ignored, except settings of other programs
 *   that are refused (`foreignSettings`)
 * @throws EngineError `invalid` with one line in `details` for each problem: the setting's name, mostly its value,
 *   unless that may be secret, and what is allowed. Files, the master key and settings that contradict each other are
 *   checked only if each setting by itself is right
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const present = Object.fromEntries(
    Object.keys(settingsSchema.shape)
      .map((name) => [name, environment[name]?.trim()] as const)
      .filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = settingsSchema.safeParse(present);
  const entityMode = parsed.success ? readEntityMode(parsed.data) : null;
  const masterKey = parsed.success ? readMasterKey(parsed.data) : null;
  const foreign = foreignSettings(environment);
  const wrong = parsed.success
    ? [...crossChecks(parsed.data), ...[entityMode, masterKey].filter((problem) => typeof problem === 'string')]
    : parsed.error.issues.map((issue) => describeProblem(String(issue.path[0]), present, issue.message));
  const problems = [...wrong, ...foreign];
  if (!parsed.success || typeof entityMode === 'string' || typeof masterKey === 'string' || problems.length > 0) {
    throw new EngineError('invalid', `wrong settings:\n  ${problems.join('\n  ')}`, { details: problems });
  }
  const settings = parsed.data;
  const database = path.resolve(settings.OM_DB_PATH);
  const base = database.replace(/\.(sqlite3?|db)$/, '');
  return Object.freeze({
    ...settings,
    given: Object.keys(present),
    paths: Object.freeze({
      defaultTenant: database,
      control: `${base}.control.sqlite`,
      tenants: `${base}.tenants`,
      lock: `${base}.lock`,
      budget: `${base}.budget.sqlite`,
      llmBudget: `${base}.llm-budget.sqlite`,
      rates: `${base}.rates.sqlite`,
      guesses: `${base}.guesses.sqlite`,
      address: `${base}.address`,
    }),
    databases: parseDatabases(settings.OM_DATABASES)!,
    embedsHere: EMBEDDED_HERE.has(settings.OM_EMBEDDINGS),
    prices: parsePrices(settings.OM_PRICES)!,
    sectorModels: sectorModelsOf(settings),
    fallbacks: fallbacksOf(settings),
    corsOrigins: listOf(settings.OM_CORS_ORIGINS),
    trustedProxies: listOf(settings.OM_TRUSTED_PROXIES),
    masterKey,
    deniedNetworks: parseNetworks(settings.OM_FETCH_DENY)!,
    webhookNetworks: parseNetworks(settings.OM_WEBHOOK_ALLOW)!,
    federationNetworks: parseNetworks(settings.OM_FEDERATION_ALLOW)!,
    entityMode,
  });
}

/** Largest file of entity types that is read, in bytes. */
const MAX_ENTITY_MODE_BYTES = 1024 * 1024;

/**
 * Returns the types of entities and relations that the settings name; null with `OM_ENTITY_MODE=none`. If the file of
 * `OM_ENTITY_MODE_FILE` is larger than 1 MiB, unreadable or malformed, it returns a text that says so.
 */
function readEntityMode(settings: Settings): EntityMode | null | string {
  const file = settings.OM_ENTITY_MODE_FILE;
  if (file === undefined) return builtInMode(settings.OM_ENTITY_MODE);
  try {
    if (fs.statSync(file).size > MAX_ENTITY_MODE_BYTES) throw new Error(`more than ${MAX_ENTITY_MODE_BYTES} bytes`);
    return parseEntityMode(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    return `OM_ENTITY_MODE_FILE=${file}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function describeProblem(name: string, present: Record<string, string | undefined>, message: string): string {
  return `${name}=${isSecretSetting(name) ? '(hidden)' : (present[name] ?? '')}: ${message}`;
}

/**
 * Whether the value of a setting may be secret or hold a secret: keys, tokens, and URLs, which may hold credentials.
 */
function isSecretSetting(name: string): boolean {
  return /_(KEY|TOKEN|SECRET)(_|$)|_(URL|ISSUER)$/.test(name) || ['OM_EMBED_FALLBACK', 'OM_DATABASES'].includes(name);
}

/** A setting with the value that is in force. */
export interface SettingInForce {
  readonly name: string;
  /** What the setting does, and its unit. */
  readonly about: string;
  /** The value as it would be written into the environment; null if the setting has no value or the value is hidden. */
  readonly value: string | null;
  /** Whether the setting has a value that is left out of `value` because it may be secret. */
  readonly isHidden: boolean;
  readonly origin: 'environment' | 'default';
}

/** Names of the settings that are written as durations with a unit, such as `6h`. `Config` has them in ms. */
const DURATIONS: ReadonlySet<string> = new Set<keyof Settings>(['OM_BACKUP_EVERY', 'OM_EVAL_EVERY']);

/**
 * Lists all settings with their values, and whether each comes from the environment or is the default. Values that may
 * be secret are left out.
 */
export function listSettings(config: Config): SettingInForce[] {
  return Object.entries(settingsSchema.shape).map(([name, schema]) => {
    const value = config[name as keyof Settings];
    const isHidden = isSecretSetting(name) && value !== undefined;
    return {
      name,
      about: schema.description ?? '',
      value: value === undefined || isHidden ? null : writtenValue(name, value),
      isHidden,
      origin: config.given.includes(name) ? 'environment' : 'default',
    };
  });
}

function writtenValue(name: string, value: string | number | boolean): string {
  return DURATIONS.has(name) ? durationText(value as number) : String(value);
}
