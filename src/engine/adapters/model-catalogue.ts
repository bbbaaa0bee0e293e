/**
 * A catalogue of embedding models that suit Cairn, for users who look for one. All facts are from the models' own
 * pages. The retrieval figures are from the pages of bge-small-en-v1.5, gte-small and gte-large-en-v1.5, whose tables
 * use one measure.
 */

/** A model of the catalogue. It runs on the user's own machine, by a provider of `OM_EMBEDDINGS`. */
export interface CatalogueModel {
  /** Name for `cairn models add` and for the model's folder; for `ollama`, the name that Ollama has for it. */
  readonly name: string;
  readonly provider: 'local' | 'ollama';
  /** Repository at Hugging Face with the model's ONNX files; null for a model that Ollama downloads. */
  readonly repository: string | null;
  /**
   * Approximate size of the download, in MB of 1,000,000 bytes; for a `local` model, the size of `model.onnx` in
   * float32.
   */
  readonly megabytes: number;
  /** Number of dimensions of its vectors: the value of `OM_VEC_DIM`. */
  readonly dimensions: number;
  /** Languages on which the model was trained, as text for people. */
  readonly languages: string;
  readonly licence: string;
  /**
   * Mean nDCG@10 over the 15 English retrieval sets of MTEB, in percent. It is null if no comparable figure was
   * published, and for multilingual models, which English sets cannot rate.
   */
  readonly retrieval: number | null;
}

export const CATALOGUE: readonly CatalogueModel[] = [
  local('all-MiniLM-L6-v2', 'Xenova/all-MiniLM-L6-v2', 90, 384, 'English', 'Apache-2.0', 41.95),
  local('e5-small-v2', 'Xenova/e5-small-v2', 133, 384, 'English', 'MIT', 49.04),
  local('bge-small-en-v1.5', 'Xenova/bge-small-en-v1.5', 133, 384, 'English', 'MIT', 51.68),
  local('gte-small', 'Xenova/gte-small', 133, 384, 'English', 'MIT', 49.46),
  local('nomic-embed-text-v1.5', 'nomic-ai/nomic-embed-text-v1.5', 547, 768, 'English', 'Apache-2.0'),
  local('multilingual-e5-small', 'Xenova/multilingual-e5-small', 470, 384, 'about 100', 'MIT'),
  local('gte-multilingual-base', 'onnx-community/gte-multilingual-base', 1_220, 768, 'over 70', 'Apache-2.0'),
  local('embeddinggemma-300m', 'onnx-community/embeddinggemma-300m-ONNX', 1_240, 768, 'over 100', 'Gemma terms'),
  local('bge-m3', 'BAAI/bge-m3', 2_270, 1_024, 'over 100', 'MIT'),
  ollama('all-minilm', 46, 384, 'English', 'Apache-2.0', 41.95),
  ollama('nomic-embed-text', 274, 768, 'English', 'Apache-2.0'),
  ollama('mxbai-embed-large', 670, 1_024, 'English', 'Apache-2.0', 54.39),
  ollama('embeddinggemma', 622, 768, 'over 100', 'Gemma terms'),
  ollama('bge-m3', 1_200, 1_024, 'over 100', 'MIT'),
];

function local(name: string, repository: string, megabytes: number, ...rest: CatalogueRest): CatalogueModel {
  return { name, provider: 'local', repository, megabytes, ...readRest(rest) };
}

function ollama(name: string, megabytes: number, ...rest: CatalogueRest): CatalogueModel {
  return { name, provider: 'ollama', repository: null, megabytes, ...readRest(rest) };
}

type CatalogueRest = readonly [dimensions: number, languages: string, licence: string, retrieval?: number];

function readRest([dimensions, languages, licence, retrieval]: CatalogueRest) {
  return { dimensions, languages, licence, retrieval: retrieval ?? null };
}
