import path from 'node:path';
import { readConfig } from '../../engine/index.ts';
import { addModel, CATALOGUE } from '../../engine/for-admin.ts';
import { bytes, dim, print, table, yellow } from '../terminal.ts';

/** Runs `cairn models list`: prints the known embedding models that can run on this machine, without a provider. */
export function listModels(): void {
  for (const provider of ['local', 'ollama'] as const) {
    const rows = CATALOGUE.filter((model) => model.provider === provider).map(
      ({ name, megabytes, dimensions, retrieval, languages, licence, repository }) => [
        name,
        bytes(megabytes * 1e6),
        String(dimensions),
        retrieval === null ? '–' : retrieval.toFixed(1),
        languages,
        licence,
        repository === null ? `ollama pull ${name}` : `huggingface.co/${repository}`,
      ],
    );
    const [head, ...body] = table(
      [[`OM_EMBEDDINGS=${provider}`, 'size', 'dimensions', 'MTEB', 'languages', 'licence', 'from'], ...rows],
      '<>>><<<',
    );
    print(dim(head!), ...body, '');
  }
  print('MTEB is the mean nDCG@10 of its 15 English retrieval sets, as published; – where no figure compares.');
  print('Cairn downloads nothing. After a download of a local model: cairn models add NAME FOLDER');
}

/**
 * Runs `cairn models add NAME FILE…`: installs a local model in the folder `models` beside the data, and prints the
 * settings for it.
 * @throws EngineError `invalid` if a file is missing or the hash or dimensions differ from those given; `conflict` if
 *   there is a model of this name; `unavailable` if the model does not work
 */
export async function installModel(
  name: string,
  files: readonly string[],
  { sha256, dimensions }: { readonly sha256?: string; readonly dimensions?: number },
): Promise<void> {
  const config = readConfig({ ...process.env, OM_EMBEDDINGS: 'none' });
  const into = path.join(path.dirname(path.resolve(config.OM_DB_PATH)), 'models');
  const added = await addModel({ name, from: files, into, sha256, dimensions }, config);
  const { alike, unlike } = added.trial;
  print(
    `${name} is at ${added.folder}`,
    `SHA-256 ${added.sha256}`,
    `cosine of two sentences that say the same ${alike.toFixed(2)}, of two about other things ${unlike.toFixed(2)}`,
  );
  if (alike <= unlike) {
    print(yellow('It does not tell them apart: is its 1_Pooling/config.json missing? See OM_LOCAL_POOLING.'));
  }
  print(
    '',
    'To use it, set this and restart; stored memories are embedded again in the background:',
    'OM_EMBEDDINGS=local',
    `LOCAL_MODEL_PATH=${added.folder}`,
    `OM_VEC_DIM=${added.dimensions}`,
  );
}
