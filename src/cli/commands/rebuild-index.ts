import type { VectorIndex } from '../../engine/adapters/index.ts';
import {
  countByState,
  countVectors,
  deleteInfo,
  openTenant,
  putInfo,
  rebuildEntities,
  REBUILDING,
  rebuildText,
  rebuildVectorIndex,
  requireUnused,
} from '../../engine/for-admin.ts';
import { withExclusiveDataFolder } from '../data-folder.ts';
import { startProgress, type Progress } from '../progress.ts';
import { counted, print } from '../terminal.ts';

/**
 * Runs `cairn rebuild-index`: makes a tenant's indexes of words, entities (mentioned names) and vectors again from its
 * memories and their vectors. No other Cairn process may use the data folder meanwhile. Entities are made again by
 * patterns; with `OM_ENTITY_EXTRACTION=llm` they are left as they are, since those that a language model found cannot
 * be derived from stored data.
 */
export async function rebuildIndex({ tenant }: { readonly tenant?: string }): Promise<void> {
  await withExclusiveDataFolder(({ config, fileOf }) => {
    const path = fileOf(tenant);
    requireUnused(path);
    const open = openTenant(path, { role: 'worker', identity: null, now: Date.now(), rebuilding: true });
    try {
      open.store.write(() => putInfo(open.store, REBUILDING, new Date().toISOString()));
      const states = countByState(open.store);
      const memories = withProgress('Words  ', states.queued + states.ready + states.failed, (progress) =>
        rebuildText(open.store, (done) => progress.update(done, counted(done, 'memory', 'memories'))),
      );
      // Names that a language model found are kept: they were paid for and cannot be derived from stored data.
      if (config.OM_ENTITY_EXTRACTION === 'patterns') {
        withProgress('Names  ', memories, (progress) =>
          rebuildEntities(open.store, config.entityMode, (done) =>
            progress.update(done, counted(done, 'memory', 'memories')),
          ),
        );
      }
      const vectors = withProgress('Vectors', countVectors(open.store), (progress) => {
        let done = 0;
        const counting = (index: VectorIndex): VectorIndex => ({
          ...index,
          add(added) {
            index.add(added);
            progress.update((done += added.length), counted(done, 'vector'));
          },
        });
        for (const [modelNo, index] of open.indexes) rebuildVectorIndex(open.store, counting(index), modelNo);
        return done;
      });
      open.store.write(() => deleteInfo(open.store, REBUILDING));
      print(`rebuilt: the words of ${counted(memories, 'memory', 'memories')} and ${counted(vectors, 'vector')}`);
    } finally {
      open.close();
    }
  });
}

function withProgress<T>(label: string, total: number, work: (progress: Progress) => T): T {
  const progress = startProgress(label, total);
  try {
    return work(progress);
  } finally {
    progress.stop();
  }
}
