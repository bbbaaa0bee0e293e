/** Translations of statements into PostgreSQL's dialect, which are made once for all tenants of a connection. */

import { LRUCache } from 'lru-cache';
import type { Catalog } from './catalog.ts';
import { findParameters, translate, type ParameterForm, type ParameterPlaces } from './dialect.ts';
import { mergeForm, type MergeForm } from './merge-forms.ts';
import { nameTenant } from './name-tenant.ts';
import { MAX_NAMES, nameOf } from './statement-names.ts';

/**
 * Translation of a statement for parameters of certain forms, such as a list or null. Other forms need another
 * translation.
 */
interface Variant {
  readonly name: string;
  readonly text: string;
  /** 1 if the tenant's number comes before the values, as parameter $1 of the translated text; else 0. */
  readonly shared: 0 | 1;
  readonly merge: MergeForm | null;
}

/** The translations of one statement to PostgreSQL's SQL, one for each combination of forms of its values. */
interface Translations {
  readonly places: ParameterPlaces;
  /** Returns the translation for values of these forms, given in the order of `places.names`. */
  variantFor(forms: readonly ParameterForm[]): Variant;
}

/**
 * The translations that a thread has made, for each catalog and statement. All tenants on a connection have one
 * catalog, so that a tenant whose store is opened anew needs no translation.
 */
const byCatalog = new WeakMap<Catalog, LRUCache<string, Translations>>();

/**
 * Returns the translations of a statement in SQLite's dialect.
 * @param ofTenant whether the tables of the statement are restricted to one tenant
 */
export function translationsOf(sql: string, catalog: Catalog, ofTenant: boolean): Translations {
  let bySql = byCatalog.get(catalog);
  if (bySql === undefined) byCatalog.set(catalog, (bySql = new LRUCache({ max: MAX_NAMES })));
  const key = ofTenant ? sql : `${sql} -- of all`;
  let known = bySql.get(key);
  if (known === undefined) bySql.set(key, (known = createTranslations(sql, catalog, ofTenant)));
  return known;
}

function createTranslations(sql: string, catalog: Catalog, ofTenant: boolean): Translations {
  const places = findParameters(sql, catalog);
  const variants = new Map<string, Variant>();
  /** The variant that was used last. Rows of a set mostly have the same forms, and to join them to a key is slow. */
  let last: { readonly forms: readonly ParameterForm[]; readonly variant: Variant } | undefined;
  return {
    places,
    variantFor(forms) {
      if (last?.forms.every((form, place) => form === forms[place]) === true) return last.variant;
      const key = forms.join();
      let variant = variants.get(key);
      if (variant === undefined)
        variants.set(key, (variant = prepareVariant(sql, { catalog, ofTenant }, places, forms)));
      last = { forms, variant };
      return variant;
    },
  };
}

function prepareVariant(
  sql: string,
  { catalog, ofTenant }: { readonly catalog: Catalog; readonly ofTenant: boolean },
  places: ParameterPlaces,
  forms: readonly ParameterForm[],
): Variant {
  const numbered = withNumber(sql, catalog);
  const textFrom = (firstNumber: number) => translate(numbered, { catalog, places, forms, firstNumber });
  const variantOf = (text: string, shared: 0 | 1): Variant => {
    const merge = mergeForm({ sql, text, shared, catalog, nameOf });
    return { name: nameOf(text), text, shared, merge };
  };
  if (ofTenant) {
    const { sql: text, tables } = nameTenant(textFrom(2), catalog);
    if (tables > 0) return variantOf(text, 1);
  }
  return variantOf(textFrom(1), 0);
}

/**
 * Adds RETURNING to an INSERT into a table whose rows the database numbers, so that the statement returns the number.
 */
function withNumber(sql: string, catalog: Catalog): string {
  const table = /^INSERT (?:OR \w+ )?INTO (\w+)/.exec(sql)?.[1];
  const numbered = table === undefined ? undefined : catalog.get(table)?.numbered;
  return numbered === undefined || /\bRETURNING\b|^INSERT OR/.test(sql) ? sql : `${sql} RETURNING ${numbered}`;
}
