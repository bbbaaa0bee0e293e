// Opens the memory of this folder.
import { openEngine, readConfig } from 'cairn-memory';

export async function openMemory() {
  const engine = await openEngine({ config: readConfig({ OM_DB_PATH: process.env.OM_DB_PATH ?? 'memory.sqlite' }) });
  return { memories: await engine.tenant('default'), close: () => engine.close() };
}
