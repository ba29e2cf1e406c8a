SELECT
  `t2`.`item`,
  COALESCE(`t7`.`score`, 0) AS `score`
FROM (
  SELECT
    CAST(`item` AS STRING) AS `item`
  FROM UNNEST([STRUCT('tea-de' AS `item`)]) AS listed
) AS `t2`
LEFT OUTER JOIN (
  SELECT
    `t5`.`item`,
    COUNT(DISTINCT `t5`.`who`) AS `score`
  FROM (
    SELECT
      CAST(`t4`.`customer` AS BYTES) AS `who`,
      CAST(`t4`.`lower_concat_product_'-'_substring_country_1_2` AS BYTES) AS `item`
    FROM (
      SELECT
        `t3`.`customer`,
        `t3`.`product`,
        `t3`.`number`,
        `t3`.`amount`,
        `t3`.`price`,
        `t3`.`country`,
        `t3`.`day`,
        `t3`.`at`,
        `t3`.`moment`,
        TRANSLATE(
          CONCAT(
            CONCAT(
              COALESCE(
                CASE
                  WHEN (
                    BYTE_LENGTH(`t3`.`product`) <= 65536
                  )
                  AND NOT (
                    REGEXP_CONTAINS(`t3`.`product`, '\\x00')
                  )
                  THEN `t3`.`product`
                  ELSE CAST(NULL AS STRING)
                END,
                ''
              ),
              '-'
            ),
            COALESCE(
              SUBSTRING(
                CASE
                  WHEN (
                    BYTE_LENGTH(`t3`.`country`) <= 65536
                  )
                  AND NOT (
                    REGEXP_CONTAINS(`t3`.`country`, '\\x00')
                  )
                  THEN `t3`.`country`
                  ELSE CAST(NULL AS STRING)
                END,
                1,
                2
              ),
              ''
            )
          ),
          'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
          'abcdefghijklmnopqrstuvwxyz'
        ) AS `lower_concat_product_'-'_substring_country_1_2`
      FROM (
        SELECT
          *
        FROM `mart`.`sales` AS `t1`
        WHERE
          CAST(CASE
            WHEN CAST(`t1`.`number` AS BIGNUMERIC) * CAST(`t1`.`number` AS BIGNUMERIC) BETWEEN CAST('-9223372036854775807.00000000000000000000000000000000000000' AS BIGNUMERIC) AND CAST('9223372036854775807.00000000000000000000000000000000000000' AS BIGNUMERIC)
            THEN CAST(`t1`.`number` AS BIGNUMERIC) * CAST(`t1`.`number` AS BIGNUMERIC)
            ELSE CAST(NULL AS BIGNUMERIC)
          END AS INT64) >= 101
          AND (
            (
              MOD(
                CAST(FLOOR(
                  ieee_divide(
                    (
                      CAST(FLOOR(
                        ieee_divide(
                          MOD(
                            (
                              CAST(FLOOR(
                                ieee_divide(
                                  MOD(
                                    (
                                      CASE
                                        WHEN COALESCE(
                                          UNIX_DATE(`t1`.`day`) + 719468,
                                          CAST(FLOOR(ieee_divide(CAST(NULL AS INT64) + 62162035200, 86400)) AS INT64)
                                        ) BETWEEN 306 AND 3652364
                                        THEN COALESCE(
                                          UNIX_DATE(`t1`.`day`) + 719468,
                                          CAST(FLOOR(ieee_divide(CAST(NULL AS INT64) + 62162035200, 86400)) AS INT64)
                                        )
                                        ELSE CAST(NULL AS INT64)
                                      END * 4
                                    ) + 3,
                                    146097
                                  ),
                                  4
                                )
                              ) AS INT64) * 4
                            ) + 3,
                            1461
                          ),
                          4
                        )
                      ) AS INT64) * 2141
                    ) + 197913,
                    65536
                  )
                ) AS INT64) - 1,
                12
              )
            ) + 1
          ) >= 12
      ) AS `t3`
    ) AS `t4`
  ) AS `t5`
  GROUP BY
    1
) AS `t7`
  ON CAST(`t2`.`item` AS BYTES) = `t7`.`item`
