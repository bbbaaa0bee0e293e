import type { LanguageModel } from '../ports.ts';

/**
 * Returns the model for one tenant, named by the path of its file: its requests say so (`tenant`). Null if `model` is
 * null.
 */
export function languageModelOf(tenant: string, model: LanguageModel | null): LanguageModel | null {
  return (
    model && {
      ...model,
      complete: (request, signal, onReply) => model.complete({ ...request, tenant }, signal, onReply),
    }
  );
}
