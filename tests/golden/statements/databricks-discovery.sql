SELECT
  CAST(`t6`.`item` AS STRING) AS `item`,
  `t6`.`users` AS `score`,
  `t6`.`total`
FROM (
  SELECT
    `t5`.`item`,
    SUM(
      IF(
        `t5`.`counts`,
        CAST(CAST(FLOOR(
          TRY_DIVIDE(1024, SQRT(GREATEST(CAST(`t5`.`own` AS DOUBLE), 1.0))) + 5.960464477539063e-08
        ) AS BIGINT) AS INT),
        0
      )
    ) AS `users`,
    COUNT(*) AS `total`
  FROM (
    SELECT
      `t4`.`who`,
      `t4`.`item`,
      `t4`.`hash`,
      `t4`.`place`,
      `t4`.`touched`,
      `t4`.`place` <= 3 AS `counts`,
      LEAST(`t4`.`touched`, 3) AS `own`
    FROM (
      SELECT
        `t3`.`who`,
        `t3`.`item`,
        `t3`.`hash`,
        COUNT(*) OVER (
          PARTITION BY `t3`.`who`
          ORDER BY `t3`.`hash` ASC NULLS LAST
          RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS `place`,
        COUNT(*) OVER (PARTITION BY `t3`.`who` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `touched`
      FROM (
        SELECT
          `t2`.`who`,
          `t2`.`item`,
          CAST(SUBSTRING(
            MD5(
              CAST(CONCAT(
                CONCAT(CONCAT('a key', CAST(`t2`.`who` AS STRING)), '/'),
                CAST(`t2`.`item` AS STRING)
              ) AS BINARY)
            ),
            IF(
              (
                0 + 1
              ) >= 1,
              0 + 1,
              0 + 1 + LENGTH(
                MD5(
                  CAST(CONCAT(
                    CONCAT(CONCAT('a key', CAST(`t2`.`who` AS STRING)), '/'),
                    CAST(`t2`.`item` AS STRING)
                  ) AS BINARY)
                )
              )
            ),
            12
          ) AS BINARY) AS `hash`
        FROM (
          SELECT DISTINCT
            *
          FROM (
            SELECT
              CAST(`t0`.`customer` AS BINARY) AS `who`,
              CAST(CASE
                WHEN IS_VALID_UTF8(`t0`.`product`)
                THEN `t0`.`product`
                ELSE CAST(NULL AS STRING)
              END AS BINARY) AS `item`
            FROM `mart`.`sales` AS `t0`
          ) AS `t1`
          WHERE
            `t1`.`who` IS NOT NULL AND `t1`.`item` IS NOT NULL
        ) AS `t2`
      ) AS `t3`
    ) AS `t4`
  ) AS `t5`
  GROUP BY
    1
) AS `t6`
WHERE
  `t6`.`users` > 0
