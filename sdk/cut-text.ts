/**
 * Stands where a text was cut before it was cleaned. Half a secret may stand beside it, which cannot be recognised any
 * more: `Secrets.clean` and `SecretScope.clean` also take out 64 characters of its line on either side of it.
 */
export const cutMark = ' … (cut)'

/**
 * For texts that are not cleaned yet: not more than the first `max` characters, with `cutMark` behind them. It is a text of its
 * own: V8's slice of one keeps the whole in memory.
 */
export const cutText = (text: string, max: number): string =>
  text.length > max ? Buffer.from(text.slice(0, max) + cutMark, 'utf16le').toString('utf16le') : text
