import type pg from 'pg'

/**
 * What connects to the database: `ours` wins over what the URL says of the same, other than in pg itself, and its `options` come
 * after those of the URL.
 */
export function connectionConfig<Config extends pg.ClientConfig>(url: string, ours: Config): Config {
  const [base = '', ...rest] = url.split('?')
  const query = rest.join('?')
  const kept = query
    .split('&')
    .filter(pair =>
      [...new URLSearchParams(pair).keys()].every(name => name !== 'options' && !(name in ours))
    )
  const given = new URLSearchParams(query).getAll('options').at(-1)
  return {
    ...ours,
    options: [given, ours.options].filter(Boolean).join(' ') || undefined,
    connectionString: rest.length === 0 ? url : `${base}?${kept.join('&')}`
  }
}
