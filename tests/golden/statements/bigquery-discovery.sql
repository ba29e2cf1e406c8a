SELECT
  CAST(`t5`.`item` AS STRING) AS `item`,
  `t5`.`users` AS `score`,
  `t5`.`total`
FROM (
  SELECT
    `t4`.`item`,
    SUM(
      IF(
        `t4`.`counts`,
        CAST(CAST(FLOOR(
          ieee_divide(1024, SQRT(GREATEST(CAST(`t4`.`own` AS FLOAT64), 1.0))) + 5.960464477539063e-08
        ) AS INT64) AS INT64),
        0
      )
    ) AS `users`,
    COUNT(*) AS `total`
  FROM (
    SELECT
      `t3`.`who`,
      `t3`.`item`,
      `t3`.`hash`,
      `t3`.`place`,
      `t3`.`touched`,
      `t3`.`place` <= 3 AS `counts`,
      LEAST(`t3`.`touched`, 3) AS `own`
    FROM (
      SELECT
        `t2`.`who`,
        `t2`.`item`,
        `t2`.`hash`,
        COUNT(*) OVER (
          PARTITION BY `t2`.`who`
          ORDER BY `t2`.`hash` ASC
          RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS `place`,
        COUNT(*) OVER (PARTITION BY `t2`.`who` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `touched`
      FROM (
        SELECT
          `t1`.`who`,
          `t1`.`item`,
          CAST(SUBSTRING(
            TO_HEX(
              MD5(
                CAST(CONCAT(
                  CONCAT(CONCAT('a key', CAST(`t1`.`who` AS STRING)), '/'),
                  CAST(`t1`.`item` AS STRING)
                ) AS BYTES)
              )
            ),
            IF(
              (
                0 + 1
              ) >= 1,
              0 + 1,
              0 + 1 + LENGTH(
                TO_HEX(
                  MD5(
                    CAST(CONCAT(
                      CONCAT(CONCAT('a key', CAST(`t1`.`who` AS STRING)), '/'),
                      CAST(`t1`.`item` AS STRING)
                    ) AS BYTES)
                  )
                )
              )
            ),
            12
          ) AS BYTES) AS `hash`
        FROM (
          SELECT DISTINCT
            CAST(`t0`.`customer` AS BYTES) AS `who`,
            CAST(`t0`.`product` AS BYTES) AS `item`
          FROM `mart`.`sales` AS `t0`
          WHERE
            CAST(`t0`.`customer` AS BYTES) IS NOT NULL
            AND CAST(`t0`.`product` AS BYTES) IS NOT NULL
        ) AS `t1`
      ) AS `t2`
    ) AS `t3`
  ) AS `t4`
  GROUP BY
    1
) AS `t5`
WHERE
  `t5`.`users` > 0
