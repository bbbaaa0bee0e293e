import { Command, InvalidArgumentError } from 'commander';

/** Options of `npm run load`. */
export interface LoadOptions {
  /** Address of the server; undefined to start a temporary service. */
  readonly url: string | undefined;
  /** Keys, one per tenant; '' for a server without keys. A temporary service gets new keys. */
  readonly keys: readonly string[];
  readonly tenants: number;
  readonly users: number;
  readonly durationMs: number;
  /** Requests a second; undefined for no limit besides the connections. */
  readonly rate: number | undefined;
  readonly connections: number;
  readonly mix: Mix;
  /** Seed of the requests: equal seeds give equal requests in the same order. */
  readonly seed: number;
}

export const KINDS = ['add', 'batch', 'query', 'document', 'read'] as const;
export type Kind = (typeof KINDS)[number];
/** Relative frequency of each kind of request. */
type Mix = Readonly<Record<Kind, number>>;

const DEFAULT_MIX: Mix = { add: 40, batch: 4, query: 40, document: 2, read: 14 };
const MAX_CONNECTIONS = 1_000;
const MAX_TENANTS = 100;

/** Parses the options. Throws CommanderError for wrong options, after it has printed the reason on stderr. */
export function parseOptions(words: readonly string[], environment: NodeJS.ProcessEnv): LoadOptions {
  const command = new Command('npm run load --')
    .description('Sends a server mixed requests and tells how it did: counts, errors and latencies of each kind.')
    .option('--url <address>', 'of a running server; else one is started on a throwaway folder')
    .option('--key <key>', 'may be repeated: a key with the role write for each tenant (CAIRN_API_KEY)', collect)
    .option('--tenants <n>', 'without --url: how many to make', between(1, MAX_TENANTS), 3)
    .option('--users <n>', 'of each tenant', between(1, 1_000_000), 20)
    .option('--minutes <n>', 'how long', positive, 1)
    .option('--rate <n>', 'requests a second, sent when they are due; else as many as are answered', positive)
    .option('--connections <n>', 'requests at once', between(1, MAX_CONNECTIONS), 8)
    .option('--mix <shares>', `such as query:9,add:1; of ${KINDS.join(', ')}`, parseMix, DEFAULT_MIX)
    .option('--seed <n>', 'same seed, same requests', between(0, 2 ** 31), 1)
    .exitOverride()
    .showHelpAfterError()
    .parse(words, { from: 'user' });
  const { url, key, minutes, ...rest } = command.opts<ParsedOptions>();
  if (url === undefined && key !== undefined) command.error('--key goes with --url', { exitCode: 2 });
  const keys = key ?? [environment['CAIRN_API_KEY'] ?? ''];
  return { rate: undefined, ...rest, url, keys, durationMs: minutes * 60_000 };
}

interface ParsedOptions {
  readonly url?: string;
  readonly key?: readonly string[];
  readonly tenants: number;
  readonly users: number;
  readonly minutes: number;
  readonly rate?: number;
  readonly connections: number;
  readonly mix: Mix;
  readonly seed: number;
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Infinity)) throw new InvalidArgumentError('expected a number above 0');
  return value;
}

function between(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`expected a whole number in ${least}..${most}`);
  };
}

function parseMix(text: string): Mix {
  const shares = text.split(',').map((part) => {
    const [kind = '', share = ''] = part.split(':');
    if (!KINDS.includes(kind as Kind) || !/^\d{1,6}$/.test(share)) {
      throw new InvalidArgumentError(`expected shares such as query:9,add:1, of ${KINDS.join(', ')}`);
    }
    return [kind as Kind, Number(share)] as const;
  });
  const mix = { add: 0, batch: 0, query: 0, document: 0, read: 0, ...Object.fromEntries(shares) };
  if (Object.values(mix).every((share) => share === 0)) throw new InvalidArgumentError('sends nothing');
  return mix;
}
