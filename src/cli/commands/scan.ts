import {
  countByState,
  openTenant,
  reindexWaiting,
  requireUnused,
  type ScannedPlace,
  scanStore,
} from '../../engine/for-admin.ts';
import { systemClock } from '../../engine/index.ts';
import { withDataFolder, withExclusiveDataFolder, type DataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { counted, dim, print, table } from '../terminal.ts';

/** Greatest number of places (ids of memories, documents …) that are printed for one kind of sensitive value. */
const MAX_NAMES = 20;
/**
 * Words for the kinds of places in which sensitive values are counted, in the order of the output. Chunks of documents
 * (`part`) and URLs of documents (`address`) are told of apart, since they are not redacted.
 */
const PLACES: Readonly<Record<Exclude<ScannedPlace, 'part' | 'address'>, string>> = {
  memory: 'memories',
  document: 'documents',
  'standing query': 'standing queries',
  'log item': 'log items',
  recall: 'recalls',
  'evaluation item': 'evaluation items',
};

interface ScanOptions {
  readonly tenant?: string;
  readonly user?: string;
  readonly redact?: boolean;
  readonly yes?: boolean;
}

/**
 * Runs `cairn scan`: counts the sensitive values in stored data by kind, and prints where they are, but never the
 * values. With `redact` and `yes` it redacts them; then no other Cairn process may use the data folder meanwhile.
 */
export async function scan(options: ScanOptions): Promise<void> {
  const applies = options.redact === true && options.yes === true;
  await (applies ? withExclusiveDataFolder : withDataFolder)((folder) => scanFolder(folder, options, applies));
}

async function scanFolder({ config, fileOf }: DataFolder, options: ScanOptions, applies: boolean): Promise<void> {
  const path = fileOf(options.tenant);
  if (applies) requireUnused(path);
  const open = openTenant(path, { role: applies ? 'worker' : 'reader', identity: null, now: Date.now() });
  const { store, indexes } = open;
  const kinds = new Map<string, { values: number; names: string[]; places: number }>();
  const places = new Map<ScannedPlace, number>();
  try {
    const states = countByState(store);
    const progress = startProgress('Scan', states.queued + states.ready + states.failed);
    const onProgress = (done: number) => progress.update(done, counted(done, 'memory', 'memories'));
    for await (const finding of scanStore(store, { userId: options.user, onProgress })) {
      for (const [kind, values] of Object.entries(finding.counts)) {
        const entry = kinds.get(kind) ?? { values: 0, names: [], places: 0 };
        kinds.set(kind, entry);
        entry.values += values;
        entry.places += 1;
        if (entry.names.length < MAX_NAMES) entry.names.push(finding.name);
      }
      places.set(finding.place, (places.get(finding.place) ?? 0) + 1);
      if (!applies) continue;
      const now = systemClock.now();
      const write = { config, now, newId: () => crypto.randomUUID(), writtenBy: 'cli', backlog: { atMost: 0 } };
      store.write(() => finding.redact({ store, indexes, ...write }));
    }
    // Words of redacted texts also stand in the contexts of memories after them.
    if (applies) while (store.write(() => reindexWaiting(store)));
    progress.stop();
  } finally {
    open.close();
  }
  if (kinds.size === 0) return print('No sensitive values were found.');
  const rows = [...kinds].map(([kind, entry]) => [kind, String(entry.values), String(entry.places)]);
  const [head, ...body] = table([['kind', 'values', 'places'], ...rows], '<>>');
  print(dim(head!), ...body, '');
  for (const [kind, entry] of kinds) {
    const more = entry.places - entry.names.length;
    print(`${kind}: ${entry.names.join(' ')}${more > 0 ? ` and ${more} more` : ''}`);
  }
  print('', conclusion(places, options, applies));
}

function conclusion(places: ReadonlyMap<ScannedPlace, number>, options: ScanOptions, applies: boolean): string {
  const listed = Object.entries(PLACES).flatMap(([place, many]) => {
    const number = places.get(place as ScannedPlace) ?? 0;
    return number === 0 ? [] : counted(number, place, many);
  });
  const found = listed.length === 0 ? counted(0, 'memory', PLACES.memory) : listed.join(', ');
  const kept = [
    ...[places.get('part') ?? 0].flatMap((parts) => (parts === 0 ? [] : counted(parts, 'part'))),
    ...[places.get('address') ?? 0].flatMap((names) => (names === 0 ? [] : counted(names, 'address', 'addresses'))),
  ];
  const rest = kept.length === 0 ? '' : `; ${kept.join(' and ')} of documents: hand the documents in again`;
  if (applies) return `redacted: ${found}${rest}`;
  return options.redact ? `would redact ${found}${rest}: confirm with --yes` : `found in ${found}${rest}`;
}
