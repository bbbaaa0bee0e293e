/**
 * Settings that Cairn does not read, of the programs that it grew from, with what to do instead. Startup refuses them,
 * because ignoring one would mean to run in another way than the operator asked for.
 */
const FOREIGN_SETTINGS: Readonly<Record<string, string>> = {
  OPEN_MEM_RERANKING: 'send `"rerank": "llm"` with a query, or set it for a tenant by PUT /settings/retrieval',
  OPEN_MEM_RERANKING_MAX_CANDIDATES: 'send `k_rerank` with a query, or set it for a tenant the same way',
  OPEN_MEM_ENTITY_EXTRACTION: 'set OM_ENTITY_EXTRACTION to patterns or llm, or OM_ENTITY_MODE=none for no graph',
};

/** Returns a line for each foreign setting that the environment holds: its name, and what to do instead. */
export function foreignSettings(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(FOREIGN_SETTINGS)
    .filter(([name]) => (environment[name]?.trim() ?? '') !== '')
    .map(([name, advice]) => `${name}: Cairn does not read this; remove it, and ${advice}`);
}
