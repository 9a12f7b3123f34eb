const allowed = ['headers', 'rewrite', 'redir', 'handle_path', 'subroute', 'authentication']
const mostHandlers = 50
const deepest = 12
const longest = 32_768

/** Handlers of the driver's own kind; null where nothing was sent. */
type Handlers = readonly object[] | null

/** What is wrong with `advanced_config`, or the handlers in it. Decided when it is saved, never when it is loaded. */
export function readAdvancedConfig(
  value: unknown
): { readonly handlers: Handlers } | { readonly fault: string } {
  if (value === null || value === undefined) return { handlers: null }
  if (!Array.isArray(value)) return { fault: 'it is no list' }
  if (value.length === 0) return { handlers: null }
  if (value.length > mostHandlers) return { fault: `it has more than ${mostHandlers} handlers` }
  if (isDeeper(value, deepest)) return { fault: `it is nested deeper than ${deepest} levels` }
  if (JSON.stringify(value).length > longest) return { fault: `it is longer than ${longest} characters` }
  const fault = faultOf(value, 'handler')
  return fault === null ? { handlers: value as object[] } : { fault }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1))
}

/** A subroute holds further handlers, which are looked at as well. */
function faultOf(handlers: readonly unknown[], what: string): string | null {
  for (const [index, handler] of handlers.entries()) {
    const place = `${what} ${index + 1}`
    if (typeof handler !== 'object' || handler === null || Array.isArray(handler))
      return `${place} is no object`
    const { handler: kind, routes } = handler as { handler?: unknown; routes?: unknown }
    if (typeof kind !== 'string' || !allowed.includes(kind)) return `${place} has a kind that is not allowed`
    if (routes === undefined) continue
    if (!Array.isArray(routes)) return `${place} has routes that are no list`
    for (const route of routes) {
      const inner = (route as { handle?: unknown } | null)?.handle
      if (inner === undefined) continue
      if (!Array.isArray(inner)) return `${place} has a route whose handle is no list`
      const fault = faultOf(inner, `${place}, handler`)
      if (fault !== null) return fault
    }
  }
  return null
}
