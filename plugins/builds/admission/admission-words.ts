const mebibyte = 2 ** 20

/** `1.2 GiB`, `300 MiB`. */
export const amount = (bytes: number): string => {
  const mib = Math.ceil(bytes / mebibyte)
  return mib < 1024 ? `${mib} MiB` : `${(mib / 1024).toFixed(1)} GiB`
}

/** `1 build is running`, `2 builds are running`. */
export const counted = (count: number, one: string, more: string): string =>
  `${count} ${count === 1 ? one : more}`
