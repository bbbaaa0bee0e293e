/**
 * Makes warnings about the fields of a body that clients of OpenMemory send and that are ignored here.
 * @param why what a client should know about each field, by its name
 * @returns the field `warnings` of the reply; an empty object if the body has none of the fields, or null in them
 */
export function warningsAbout(
  body: Readonly<Record<string, unknown>>,
  why: Readonly<Record<string, string>>,
): { readonly warnings?: string[] } {
  const warnings = Object.entries(why).flatMap(([name, reason]) => (body[name] == null ? [] : [`${name}: ${reason}`]));
  return warnings.length === 0 ? {} : { warnings };
}
