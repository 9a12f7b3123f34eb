/** Buckets of Amazon S3, and of stores that speak its protocol. */

export { type BucketOptions, S3Bucket } from './bucket.js'
export { S3Error, type S3Object, type S3Settings, s3Endpoint } from './settings.js'
