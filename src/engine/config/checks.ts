import { SECTORS } from '../types.ts';
import { parseDatabases } from './databases.ts';
import { commaSeparated, fallbacksOf, sectorModelsOf, sectorSetting, type Fallback } from './embedding-models.ts';
import { hasModels, withModel } from '../named-model.ts';
import { serviceUrl } from './setting-kinds.ts';
import type { Settings } from './settings.ts';

/**
 * Checks whether settings fit together, after each was checked by itself.
 * @returns one line for each problem, which names the setting and says what is expected; empty if there is none
 */
export function crossChecks(settings: Settings): string[] {
  const problems: string[] = [];
  if (settings.OM_CHUNK_OVERLAP_TOKENS * 2 > settings.OM_CHUNK_TOKENS) {
    problems.push(
      `OM_CHUNK_OVERLAP_TOKENS=${settings.OM_CHUNK_OVERLAP_TOKENS}: expected at most half of OM_CHUNK_TOKENS, ` +
        `${settings.OM_CHUNK_TOKENS}`,
    );
  }
  if (settings.OM_EMBEDDINGS === 'synthetic' && settings.OM_VEC_DIM % 256 !== 0) {
    problems.push(
      `OM_VEC_DIM=${settings.OM_VEC_DIM}: the offline embedder takes multiples of 256 (768 is the default)`,
    );
  }
  if (settings.OM_EMBEDDINGS !== 'none' && settings.OM_VEC_DIM % 8 !== 0) {
    problems.push(`OM_VEC_DIM=${settings.OM_VEC_DIM}: expected a multiple of 8, as the index keeps a bit a dimension`);
  }
  if (
    settings.OM_EMBEDDINGS === 'openai' &&
    settings.OPENAI_API_KEY === undefined &&
    new URL(settings.OM_OPENAI_BASE_URL).hostname === 'api.openai.com'
  ) {
    problems.push('OPENAI_API_KEY is not set: api.openai.com needs one; for a local server set OM_OPENAI_BASE_URL');
  }
  problems.push(...checkEmbeddings(settings), ...checkSectorModels(settings), ...checkFallbacks(settings));
  problems.push(...checkTokens(settings));
  if (
    settings.OM_LLM_MODEL !== undefined &&
    settings.OM_LLM_API_KEY === undefined &&
    new URL(settings.OM_LLM_BASE_URL).hostname === 'api.openai.com'
  ) {
    problems.push('OM_LLM_API_KEY is not set: api.openai.com needs one; for a local server set OM_LLM_BASE_URL');
  }
  if (settings.OM_METRICS_PORT !== 0 && settings.OM_METRICS_HOST === undefined) {
    problems.push(
      `OM_METRICS_PORT=${settings.OM_METRICS_PORT}: needs OM_METRICS_HOST, the address where no key is asked for, ` +
        `such as 127.0.0.1`,
    );
  }
  if (settings.OM_ENTITY_EXTRACTION === 'llm' && settings.OM_LLM_MODEL === undefined) {
    problems.push('OM_ENTITY_EXTRACTION=llm: needs a language model, so set OM_LLM_MODEL too, or choose patterns');
  }
  for (const name of ['OM_CONTRADICTIONS', 'OM_REFLECTION'] as const) {
    if (settings[name] === 'llm' && settings.OM_LLM_MODEL === undefined) {
      problems.push(`${name}=llm: needs a language model, so set OM_LLM_MODEL too, or choose off`);
    }
  }
  if (settings.OM_LLM_RERANK_FALLBACK !== undefined && settings.OM_LLM_MODEL === undefined) {
    problems.push('OM_LLM_RERANK_FALLBACK: steps in for OM_LLM_MODEL, so set that too, or leave it out');
  }
  if (settings.OM_CONTRADICTIONS === 'llm' && settings.OM_EMBEDDINGS === 'none') {
    problems.push(
      'OM_CONTRADICTIONS=llm: compares what is near by its vectors, so OM_EMBEDDINGS=none has nothing to compare',
    );
  }
  if (settings.OM_ENTITY_MODE === 'none' && settings.OM_ENTITY_MODE_FILE !== undefined) {
    problems.push('OM_ENTITY_MODE=none builds no graph, which OM_ENTITY_MODE_FILE asks for: leave one of them out');
  }
  problems.push(...checkBackups(settings), ...checkDatabase(settings));
  return problems;
}

const ENCRYPTION_KEYS = ['OM_ENCRYPTION_KEY_FILE', 'OM_ENCRYPTION_KEY', 'OM_ENCRYPTION_KEY_COMMAND'] as const;

/**
 * Checks the settings of databases: without `OM_DATABASE_URL`, that no setting needs it; with it, that no setting is
 * used that a tenant in PostgreSQL does not support. Returns one line for each problem.
 */
function checkDatabase(settings: Settings): string[] {
  const { OM_DATABASE_READ_URL: standby, OM_DATABASE_READ_LAG_MS: lagMs } = settings;
  const further = Object.values(parseDatabases(settings.OM_DATABASES)!);
  const unused =
    lagMs === undefined || standby !== undefined
      ? []
      : ['OM_DATABASE_READ_LAG_MS: bounds what OM_DATABASE_READ_URL answers, so set that too, or leave it out'];
  if (settings.OM_DATABASE_URL === undefined) {
    return [
      ...(further.length === 0 ? [] : ['OM_DATABASES: needs OM_DATABASE_URL, where keys and settings live']),
      ...unused,
      ...(standby === undefined
        ? []
        : ['OM_DATABASE_READ_URL: is a standby of OM_DATABASE_URL, so set that too, or leave it out']),
    ];
  }
  const refused: readonly (readonly [isSet: boolean, problem: string])[] = [
    [settings.OM_BACKUP_EVERY !== undefined, 'OM_BACKUP_EVERY: back up a tenant in PostgreSQL by its own means'],
    [settings.OM_TENANT_MAX_MB > 0, `OM_TENANT_MAX_MB=${settings.OM_TENANT_MAX_MB}: it is not counted in PostgreSQL`],
    [settings.OM_VECTOR_INDEX === 'vec0', 'OM_VECTOR_INDEX=vec0: needs a file of SQLite; choose auto'],
    [settings.OM_WORD_INDEX !== 'auto', `OM_WORD_INDEX=${settings.OM_WORD_INDEX}: needs a file of SQLite; choose auto`],
    [
      ENCRYPTION_KEYS.some((name) => settings[name] !== undefined),
      `${ENCRYPTION_KEYS.join(', ')}: only files are sealed; encrypt the disks of the database`,
    ],
  ];
  return [
    ...refused.flatMap(([isSet, problem]) => (isSet ? [`${problem}, or leave OM_DATABASE_URL out`] : [])),
    ...(further.includes(settings.OM_DATABASE_URL)
      ? ['OM_DATABASES: has the database of OM_DATABASE_URL, which is the home of tenants placed nowhere else']
      : []),
    ...unused,
    ...(standby !== undefined && settings.OM_QUERY_THREADS === 0
      ? ['OM_DATABASE_READ_URL: only the threads for queries read from it, so OM_QUERY_THREADS=0 has no use for it']
      : []),
  ];
}

function checkBackups({ OM_BACKUP_EVERY: every, OM_BACKUP_FOLDER: folder }: Settings): string[] {
  if ((every === undefined) === (folder === undefined)) return [];
  return [
    every === undefined
      ? 'OM_BACKUP_EVERY is not set: OM_BACKUP_FOLDER needs it, such as 24h'
      : 'OM_BACKUP_FOLDER is not set: OM_BACKUP_EVERY needs a folder for the backups',
  ];
}

/**
 * Checks that the chosen provider has what it needs and can make vectors of `OM_VEC_DIM` dimensions, as far as that is
 * known of its models. Returns one line for each problem, like the other checks here.
 */
function checkEmbeddings(settings: Settings): string[] {
  const { OM_VEC_DIM: dimensions } = settings;
  const wrongDimensions = (expected: string) => `OM_VEC_DIM=${dimensions}: ${expected}`;
  switch (settings.OM_EMBEDDINGS) {
    case 'openai': {
      const maxDimensions = settings.OM_OPENAI_MODEL.endsWith('text-embedding-3-small') ? 1536 : 3072;
      const isSized = settings.OM_OPENAI_MODEL.includes('text-embedding-3') && dimensions > maxDimensions;
      return isSized ? [wrongDimensions(`${settings.OM_OPENAI_MODEL} makes at most ${maxDimensions}`)] : [];
    }
    case 'gemini':
      return [
        ...(settings.GEMINI_API_KEY === undefined ? ['GEMINI_API_KEY is not set: OM_EMBEDDINGS=gemini needs one'] : []),
        ...(dimensions < 128 || dimensions > 3072 ? [wrongDimensions('Gemini makes 128..3072')] : []),
      ];
    case 'bedrock':
      return [
        ...checkAws(settings),
        ...([256, 512, 1024].includes(dimensions) ? [] : [wrongDimensions('Titan v2 makes 256, 512 or 1024')]),
      ];
    case 'local':
      return settings.LOCAL_MODEL_PATH === undefined
        ? ['LOCAL_MODEL_PATH is not set: OM_EMBEDDINGS=local needs the folder of a model']
        : [];
    case 'synthetic':
    case 'ollama':
    case 'none':
      return [];
  }
}

/**
 * Returns problems of `OM_EMBED_MODE` and the sectors' models: whether they fit together and fit the provider. Each
 * model that is named must pass the checks of the provider's usual model.
 */
function checkSectorModels(settings: Settings): string[] {
  const { OM_EMBED_MODE: mode, OM_EMBEDDINGS: provider } = settings;
  const named = SECTORS.map(sectorSetting).filter((name) => settings[name] !== undefined);
  if (mode === 'simple') {
    return named.map((name) => `${name}=${settings[name]}: only OM_EMBED_MODE=advanced has a model a sector`);
  }
  if (!hasModels(provider)) {
    return [
      `OM_EMBED_MODE=advanced: OM_EMBEDDINGS has to be openai, gemini, ollama or bedrock, as ${provider} has no ` +
        `several models to choose from; or take OM_EMBED_MODE=simple`,
    ];
  }
  return sectorModelsOf(settings)!.flatMap(({ model, dimensions }, place) => {
    const name = sectorSetting(SECTORS[place]!);
    if (settings[name] === undefined) return [];
    const wrong = (expected: string) => [`${name}=${settings[name]}: ${expected}`];
    if (dimensions < 64 || dimensions > 4096 || dimensions % 8 !== 0) {
      return wrong('expected dimensions of 64..4096, a multiple of 8');
    }
    const problemsAnyway = new Set(checkEmbeddings(settings));
    return checkEmbeddings(withModel(settings, { model, dimensions }))
      .filter((problem) => !problemsAnyway.has(problem))
      .flatMap(wrong);
  });
}

/**
 * Checks that `OM_EMBED_FALLBACK_KEY` has no more keys than `OM_EMBED_FALLBACK` has servers, and if there are servers,
 * that `OM_EMBEDDINGS` is `openai` and that they are base URLs. The servers must serve the same model, which cannot be
 * checked here.
 * @returns the first problem found, as a line that names the setting; empty if there is none
 */
function checkFallbacks(settings: Settings): string[] {
  const fallbacks = fallbacksOf(settings);
  const keys = settings.OM_EMBED_FALLBACK_KEY === undefined ? [] : commaSeparated(settings.OM_EMBED_FALLBACK_KEY);
  if (keys.length > fallbacks.length)
    return ['OM_EMBED_FALLBACK_KEY: holds more keys than OM_EMBED_FALLBACK has servers'];
  if (fallbacks.length === 0) return [];
  if (settings.OM_EMBEDDINGS !== 'openai') {
    return [
      `OM_EMBED_FALLBACK: only OM_EMBEDDINGS=openai has servers that can stand in, not ${settings.OM_EMBEDDINGS}`,
    ];
  }
  const isWrong = ({ baseUrl }: Fallback) => !serviceUrl().safeParse(baseUrl).success;
  return fallbacks.some(isWrong)
    ? [
        'OM_EMBED_FALLBACK: expected base URLs, without name or password, that serve the same model: vectors of ' +
          'different models are never compared, so no other provider can stand in',
      ]
    : [];
}

/**
 * Checks that the settings of tokens come with an issuer, an issuer with the audience that tokens must be for, and a
 * client secret with a client id.
 */
function checkTokens(settings: Settings): string[] {
  if (settings.OM_OIDC_CLIENT_SECRET !== undefined && settings.OM_OIDC_CLIENT_ID === undefined)
    return ['OM_OIDC_CLIENT_SECRET: means nothing without OM_OIDC_CLIENT_ID; set that too'];
  if (settings.OM_OIDC_ISSUER !== undefined) {
    return settings.OM_OIDC_AUDIENCE === undefined
      ? ['OM_OIDC_AUDIENCE is not set: without it, tokens that the issuer made for other services would be accepted']
      : [];
  }
  const names = [
    'OM_OIDC_AUDIENCE',
    'OM_OIDC_JWKS_URL',
    'OM_OIDC_CLIENT_ID',
    'OM_OIDC_TENANT_CLAIM',
    'OM_OIDC_ROLE_CLAIM',
    'OM_OIDC_USER_CLAIM',
  ] as const;
  return names
    .filter((name) => settings[name] !== undefined)
    .map((name) => `${name}: means nothing without OM_OIDC_ISSUER, so no token would be accepted; set that too`);
}

function checkAws(settings: Settings): string[] {
  const { AWS_REGION: region, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = settings;
  const problems: string[] = [];
  if (region === undefined) problems.push('AWS_REGION is not set: OM_EMBEDDINGS=bedrock needs it');
  // The region becomes part of a host name.
  else if (!/^[a-z0-9-]+$/.test(region)) problems.push('AWS_REGION: expected a region such as eu-central-1');
  if (settings.AWS_BEARER_TOKEN_BEDROCK === undefined && (id === undefined || secret === undefined)) {
    problems.push(
      'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set: OM_EMBEDDINGS=bedrock needs them, or ' +
        'AWS_BEARER_TOKEN_BEDROCK',
    );
  }
  return problems;
}
