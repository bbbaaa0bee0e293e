import { countByState, openTenant, redactMemory, requireUnused, scanMemories } from '../../engine/for-admin.ts';
import { systemClock } from '../../engine/index.ts';
import { withDataFolder, withExclusiveDataFolder, type DataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { counted, dim, print, table } from '../terminal.ts';

/** Most ids that are printed of one kind. */
const MAX_IDS = 20;

interface ScanOptions {
  readonly tenant?: string;
  readonly user?: string;
  readonly redact?: boolean;
  readonly yes?: boolean;
}

/**
 * Runs `cairn scan`: counts the sensitive values in stored memories by kind, with the ids of the memories, never the
 * values. With `redact` and `yes` it redacts them, as the only process on the files.
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
  const kinds = new Map<string, { values: number; ids: string[]; memories: number }>();
  let redacted = 0;
  let parts = 0;
  try {
    const states = countByState(store);
    const progress = startProgress('Scan', states.queued + states.ready + states.failed);
    const onProgress = (done: number) => progress.update(done, counted(done, 'memory', 'memories'));
    for await (const found of scanMemories(store, { userId: options.user, onProgress })) {
      for (const [kind, values] of Object.entries(found.counts)) {
        const entry = kinds.get(kind) ?? { values: 0, ids: [], memories: 0 };
        kinds.set(kind, entry);
        entry.values += values;
        entry.memories += 1;
        if (entry.ids.length < MAX_IDS) entry.ids.push(found.id);
      }
      if (found.isPart) parts += 1;
      else redacted += 1;
      if (!applies) continue;
      const now = systemClock.now();
      const write = { config, now, newId: () => crypto.randomUUID(), writtenBy: 'cli', backlog: { atMost: 0 } };
      redactMemory({ store, indexes, ...write }, found);
    }
    progress.stop();
  } finally {
    open.close();
  }
  if (kinds.size === 0) return print('No sensitive values were found.');
  const rows = [...kinds].map(([kind, { values, memories }]) => [kind, String(values), String(memories)]);
  const [head, ...body] = table([['kind', 'values', 'memories'], ...rows], '<>>');
  print(dim(head!), ...body, '');
  for (const [kind, { ids, memories }] of kinds) {
    print(`${kind}: ${ids.join(' ')}${memories > ids.length ? ` and ${memories - ids.length} more` : ''}`);
  }
  print('', conclusion({ redacted, parts }, options, applies));
}

function conclusion(found: { redacted: number; parts: number }, options: ScanOptions, applies: boolean): string {
  const rest = found.parts === 0 ? '' : `; ${counted(found.parts, 'part')} of documents: hand the documents in again`;
  const memories = counted(found.redacted, 'memory', 'memories');
  if (applies) return `redacted: ${memories}${rest}`;
  return options.redact ? `would redact ${memories}${rest}: confirm with --yes` : `found in ${memories}${rest}`;
}
